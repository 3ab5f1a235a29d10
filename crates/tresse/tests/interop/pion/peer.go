// A plain SCTP peer on pion/sctp for the interoperability tests, in UDP.
//
// Settings, commands and what it says are those of ../sockets/peer.c, as far as the stack goes: one address,
// no commands for addresses.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/pion/sctp"
)

const (
	// Longer than any message of these tests.
	longest = 1 << 20
	// Payload protocol identifier of message 0; the others follow.
	firstPPID = 1000000
)

// Chunk types that tell how an association ends (RFC 9260 section 3.2).
const (
	chunkAbort            = 6
	chunkShutdownAck      = 8
	chunkShutdownComplete = 14
)

type peer struct {
	association *sctp.Association
	echo        bool
	streams     uint16

	// Number of the next message to generate.
	next uint32

	mutex   sync.Mutex
	opened  map[uint16]*sctp.Stream
	readers sync.WaitGroup

	messages, bytes, wrong atomic.Uint64
}

// packets is a UDP socket as the connection that the stack wants: it answers whoever sent last, and notes
// how the association ends.
type packets struct {
	*net.UDPConn
	remote   atomic.Pointer[net.UDPAddr]
	graceful atomic.Bool
}

func (p *packets) Read(into []byte) (int, error) {
	n, from, err := p.ReadFromUDP(into)
	if err != nil {
		return n, err
	}
	p.remote.Store(from)
	p.note(into[:n])
	return n, nil
}

func (p *packets) Write(packet []byte) (int, error) {
	p.note(packet)
	return p.WriteToUDP(packet, p.remote.Load())
}

func (p *packets) RemoteAddr() net.Addr {
	return p.remote.Load()
}

func (p *packets) note(packet []byte) {
	if len(packet) > 12 {
		switch packet[12] {
		case chunkShutdownAck, chunkShutdownComplete:
			p.graceful.Store(true)
		case chunkAbort:
			p.graceful.Store(false)
		}
	}
}

func say(words ...any) {
	fmt.Println(words...)
}

// length and content are the rule that every peer of these tests has.
func length(i uint32) int {
	return int(4 + i*7919%20000)
}

func content(i uint32) []byte {
	message := make([]byte, length(i))
	for at := range message {
		message[at] = byte(uint32(at)*31 + i*7)
	}
	binary.BigEndian.PutUint32(message, i)
	return message
}

// reliability of a stream's next message; which messages are unordered is part of the rule.
func order(stream *sctp.Stream, i uint32, kind byte, value uint32) {
	stream.SetReliabilityParams(i%3 == 2, kind, value)
}

func (p *peer) open(id uint16) (*sctp.Stream, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if stream, ok := p.opened[id]; ok {
		return stream, nil
	}
	stream, err := p.association.OpenStream(id, sctp.PayloadTypeWebRTCBinary)
	if err == nil {
		p.adopt(stream)
	}
	return stream, err
}

// adopt begins to read a stream; the mutex is held.
func (p *peer) adopt(stream *sctp.Stream) {
	p.opened[stream.StreamIdentifier()] = stream
	p.readers.Add(1)
	go p.read(stream)
}

func (p *peer) accept() {
	for {
		stream, err := p.association.AcceptStream()
		if err != nil {
			return
		}
		p.mutex.Lock()
		p.adopt(stream)
		p.mutex.Unlock()
	}
}

func (p *peer) read(stream *sctp.Stream) {
	defer p.readers.Done()
	buffer := make([]byte, longest)
	// The number after the latest ordered message.
	expected := uint32(0)
	for {
		n, ppid, err := stream.ReadSCTP(buffer)
		if err != nil {
			// The end of a stream while the association lives: the peer has reset it.
			if errors.Is(err, io.EOF) {
				p.forget(stream)
				// To this stack a stream is both directions: it begins anew in the other one too.
				_ = stream.Close()
				// Last: whoever hears it may ask for messages on the stream, which must be the new one.
				say("reset in", stream.StreamIdentifier())
			}
			return
		}
		number := uint32(ppid) - firstPPID
		p.messages.Add(1)
		p.bytes.Add(uint64(n))
		late := false
		if number%3 != 2 {
			late = number < expected
			expected = number + 1
		}
		if late || !bytes.Equal(buffer[:n], content(number)) {
			p.wrong.Add(1)
		}
		if p.echo {
			order(stream, number, sctp.ReliabilityTypeReliable, 0)
			if _, err := stream.WriteSCTP(buffer[:n], ppid); err != nil {
				say("echo refused")
			}
		}
	}
}

func (p *peer) forget(stream *sctp.Stream) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.opened[stream.StreamIdentifier()] == stream {
		delete(p.opened, stream.StreamIdentifier())
	}
}

func (p *peer) generate(count uint32, kind byte, value uint32) {
	done := uint32(0)
	for ; done < count; done++ {
		i := p.next
		stream, err := p.open(uint16(i) % p.streams)
		if err != nil {
			break
		}
		if i%2 == 1 {
			order(stream, i, kind, value)
		} else {
			order(stream, i, sctp.ReliabilityTypeReliable, 0)
		}
		if _, err := stream.WriteSCTP(content(i), sctp.PayloadProtocolIdentifier(firstPPID+i)); err != nil {
			break
		}
		p.next++
	}
	say("generated", done)
}

func (p *peer) obey() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := append(strings.Fields(lines.Text()), "", "", "", "")
		number := parse(words[1])
		switch words[0] {
		case "generate":
			kind := byte(sctp.ReliabilityTypeReliable)
			switch words[2] {
			case "retransmissions":
				kind = sctp.ReliabilityTypeRexmit
			case "lifetime":
				kind = sctp.ReliabilityTypeTimed
			}
			p.generate(number, kind, parse(words[3]))
		case "reset":
			stream, err := p.open(uint16(number))
			if err == nil {
				err = stream.Close()
			}
			if err != nil {
				say("reset refused")
			}
		case "shutdown":
			_ = p.association.Shutdown(context.Background())
		case "abort":
			p.association.Abort("as asked for")
		default:
			log.Fatalf("no such command: %s", lines.Text())
		}
	}
}

// parse reads a number; a word that is not there stands for 0.
func parse(text string) uint32 {
	if text == "" {
		return 0
	}
	number, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		log.Fatal(err)
	}
	return uint32(number)
}

func main() {
	set := map[string]string{}
	for _, argument := range os.Args[1:] {
		key, value, _ := strings.Cut(argument, "=")
		set[key] = value
	}
	local := &net.UDPAddr{IP: net.ParseIP(set["local"]), Port: int(parse(set["udp"]))}
	socket, err := net.ListenUDP("udp", local)
	if err != nil {
		log.Fatal(err)
	}
	conn := &packets{UDPConn: socket}
	options := []sctp.AssociationOption{
		sctp.WithNetConn(conn),
		sctp.WithBlockWrite(true),
		sctp.WithRTOMax(1000),
		sctp.WithEnableInterleaving(strings.Contains(set["use"], "interleaving")),
	}
	p := &peer{echo: set["work"] == "echo", streams: uint16(parse(set["streams"])), opened: map[uint16]*sctp.Stream{}}
	p.association, err = associate(set, conn, options)
	if err != nil {
		log.Fatal(err)
	}
	say("connected")
	go p.obey()
	p.accept()
	p.readers.Wait()
	say("received", p.messages.Load(), p.bytes.Load(), p.wrong.Load())
	if conn.graceful.Load() {
		say("ended graceful")
	} else {
		say("ended aborted")
	}
}

func associate(set map[string]string, conn *packets, options []sctp.AssociationOption) (*sctp.Association, error) {
	if set["role"] == "server" {
		say("listening")
		var all []sctp.ServerOption
		for _, option := range options {
			all = append(all, option)
		}
		return sctp.ServerWithOptions(all...)
	}
	conn.remote.Store(&net.UDPAddr{IP: net.ParseIP(set["peer"]), Port: int(parse(set["peer_udp"]))})
	var all []sctp.ClientOption
	for _, option := range options {
		all = append(all, option)
	}
	return sctp.ClientWithOptions(all...)
}
