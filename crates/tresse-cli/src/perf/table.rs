//! Live table of paths and streams, redrawn for each interval on a screen of its own. Independent of associations.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::Line;
use ratatui::widgets::{Block, Cell, Paragraph, Row, Table};

use crate::report::words::{rate, size};

/// Contents of the table: the measurements of one interval, and the state at its end.
#[derive(Default)]
pub(super) struct Sample {
    /// Time of the measurement, in seconds.
    pub(super) at_s: f64,
    /// Rates of both directions, as far as they are measured.
    pub(super) out_mbps: Option<f64>,
    pub(super) in_mbps: Option<f64>,
    /// Limits of the data that this side sends; empty where it sends none.
    pub(super) limited_by: String,
    pub(super) paths: Vec<PathRow>,
    pub(super) streams: Vec<StreamRow>,
}

/// One path.
pub(super) struct PathRow {
    pub(super) id: usize,
    /// Its addresses, the own one first.
    pub(super) ends: String,
    pub(super) state: &'static str,
    /// Rate of user data that the peer acknowledged.
    pub(super) out_mbps: f64,
    /// Rate of packets received, headers of SCTP included.
    pub(super) in_mbps: f64,
    pub(super) srtt_ms: Option<f64>,
    pub(super) cwnd_bytes: usize,
    pub(super) flight_bytes: usize,
    pub(super) chunks_resent: u64,
}

/// One stream: the rates of data sent and received, and the bytes that wait.
pub(super) struct StreamRow {
    pub(super) id: u16,
    pub(super) out_mbps: f64,
    pub(super) in_mbps: f64,
    pub(super) waiting: usize,
}

impl Sample {
    /// Draws the table, and below it as many of the last lines of `said` as fit.
    pub(super) fn draw(&self, frame: &mut Frame<'_>, said: &[String]) {
        let streams = if self.streams.is_empty() { 0 } else { self.streams.len().min(MOST_STREAMS) };
        let with_frame = |rows: usize| if rows == 0 { 0 } else { rows as u16 + FRAME };
        let heights = [1, with_frame(self.paths.len()), with_frame(streams)];
        let mut left = frame.area().height;
        let heights = heights.map(|wanted| {
            let height = wanted.min(left);
            left -= height;
            Constraint::Length(height)
        });
        let areas = Layout::vertical(heights.into_iter().chain([Constraint::Fill(1)])).split(frame.area());
        frame.render_widget(Paragraph::new(self.title()), areas[0]);
        self.draw_paths(frame, areas[1]);
        self.draw_streams(frame, areas[2]);
        let room = usize::from(areas[3].height);
        let last = said.len().saturating_sub(room);
        let lines: Vec<_> = said[last..].iter().map(|line| Line::raw(line.as_str())).collect();
        frame.render_widget(Paragraph::new(lines), areas[3]);
    }

    fn title(&self) -> Line<'_> {
        let mut words = format!(" tresse perf {:>8.1} s", self.at_s);
        for (direction, mbps) in [("out", self.out_mbps), ("in", self.in_mbps)] {
            if let Some(mbps) = mbps {
                words.push_str(&format!("   {direction} {}", rate(mbps * 1e6)));
            }
        }
        if !self.limited_by.is_empty() {
            words.push_str(&format!("   limited by {}", self.limited_by));
        }
        Line::raw(words).bold()
    }

    fn draw_paths(&self, frame: &mut Frame<'_>, area: Rect) {
        let rows = |with_ends| -> Vec<_> {
            self.paths.iter().map(|path| path.columns(with_ends, self.directions())).collect()
        };
        let full = rows(true);
        // On a narrow terminal there is no room for addresses.
        let fits = width_of(&widths(&full)) + SIDES <= area.width;
        draw_table(frame, area, "paths", &if fits { full } else { rows(false) });
    }

    fn draw_streams(&self, frame: &mut Frame<'_>, area: Rect) {
        let room = usize::from(area.height.saturating_sub(FRAME));
        let all = self.streams.len();
        let shown = if all <= room { all } else { room.saturating_sub(1) };
        let mut rows: Vec<_> =
            self.streams[..shown].iter().map(|stream| stream.columns(self.directions())).collect();
        if shown < all {
            rows.push(vec![Column::text("stream", "more"), Column::number("", 0, (all - shown).to_string())]);
        }
        draw_table(frame, area, "streams", &rows);
    }

    /// Returns the directions that are measured: data sent, and data received.
    fn directions(&self) -> (bool, bool) {
        (self.out_mbps.is_some(), self.in_mbps.is_some())
    }
}

impl PathRow {
    fn columns(&self, with_ends: bool, directions: (bool, bool)) -> Vec<Column> {
        let round_trip = self.srtt_ms.map_or("-".to_owned(), |srtt| format!("{srtt:.1} ms"));
        let mut columns = vec![Column::number("path", 4, self.id.to_string())];
        if with_ends {
            columns.push(Column::text("from and to", &self.ends));
        }
        let state = Column::text("state", &self.state.replace('_', " "));
        columns.push(Column { style: colour(self.state), ..state });
        columns.extend(rates(directions, (self.out_mbps, self.in_mbps)));
        columns.extend([
            Column::number("round trip", 10, round_trip),
            Column::number("window", 7, size(self.cwnd_bytes as u64)),
            Column::number("in flight", 9, size(self.flight_bytes as u64)),
            Column::number("resent", 6, self.chunks_resent.to_string()),
        ]);
        columns
    }
}

impl StreamRow {
    fn columns(&self, directions: (bool, bool)) -> Vec<Column> {
        let mut columns = vec![Column::number("stream", 6, self.id.to_string())];
        columns.extend(rates(directions, (self.out_mbps, self.in_mbps)));
        columns.push(Column::number("waiting", 9, size(self.waiting as u64)));
        columns
    }
}

/// Returns columns for the directions that are measured.
fn rates(directions: (bool, bool), (out_mbps, in_mbps): (f64, f64)) -> impl Iterator<Item = Column> {
    let column = |head, shown: bool, mbps: f64| shown.then(|| Column::number(head, 11, rate(mbps * 1e6)));
    [column("out", directions.0, out_mbps), column("in", directions.1, in_mbps)].into_iter().flatten()
}

/// Content of a row in one column.
struct Column {
    head: &'static str,
    text: String,
    /// Least width, so that the column does not move while its numbers change.
    least: usize,
    right: bool,
    style: Style,
}

impl Column {
    fn text(head: &'static str, text: &str) -> Self {
        Column { head, text: text.to_owned(), least: 0, right: false, style: Style::new() }
    }

    fn number(head: &'static str, least: usize, text: String) -> Self {
        Column { head, text, least, right: true, style: Style::new() }
    }

    fn cell(&self, text: String) -> Cell<'static> {
        let line = Line::raw(text);
        Cell::new(if self.right { line.right_aligned() } else { line })
    }
}

/// Returns the widths of all columns.
fn widths(rows: &[Vec<Column>]) -> Vec<u16> {
    let count = rows.first().map_or(0, Vec::len);
    let width = |at: usize| {
        let column = rows.iter().filter_map(|row| row.get(at));
        column.map(|one| one.least.max(one.head.len()).max(one.text.chars().count())).max().unwrap_or(0)
    };
    (0..count).map(|at| width(at) as u16).collect()
}

/// Returns the width of a row, with the spaces between its columns.
fn width_of(widths: &[u16]) -> u16 {
    widths.iter().map(|width| width + BETWEEN).sum::<u16>().saturating_sub(BETWEEN)
}

/// Draws a table in a frame.
fn draw_table(frame: &mut Frame<'_>, area: Rect, title: &str, rows: &[Vec<Column>]) {
    let Some(first) = rows.first().filter(|_| !area.is_empty()) else { return };
    let head = Row::new(first.iter().map(|column| column.cell(column.head.to_owned()))).bold();
    let cells = |row: &Vec<Column>| {
        Row::new(row.iter().map(|column| column.cell(column.text.clone()).style(column.style)))
    };
    let table = Table::new(rows.iter().map(cells), widths(rows)).header(head).column_spacing(BETWEEN);
    frame.render_widget(table.block(Block::bordered().title(format!(" {title} "))), area);
}

fn colour(state: &str) -> Style {
    match state {
        "active" => Color::Green.into(),
        "inactive" => Color::Red.into(),
        _ => Color::Yellow.into(),
    }
}

/// Streams that are shown: more would push the lines below off the screen.
const MOST_STREAMS: usize = 16;
/// Rows of a table besides its content: two of its frame, and the head.
const FRAME: u16 = 3;
/// Columns of a table's frame.
const SIDES: u16 = 2;
/// Columns of space between two columns of a table.
const BETWEEN: u16 = 2;

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    fn path(id: usize, state: &'static str, srtt_ms: Option<f64>) -> PathRow {
        PathRow {
            id,
            ends: format!("10.0.{id}.2 > 10.0.{id}.1"),
            state,
            out_mbps: 9.5,
            in_mbps: 0.25,
            srtt_ms,
            cwnd_bytes: 120_000,
            flight_bytes: 64,
            chunks_resent: 3,
        }
    }

    fn stream(id: u16) -> StreamRow {
        StreamRow { id, out_mbps: 9.5, in_mbps: 0.0, waiting: 64 * usize::from(id) }
    }

    /// The rows of a screen of this size, without the spaces at their ends.
    fn drawn(sample: &Sample, said: &[String], (width, height): (u16, u16)) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("it cannot fail");
        terminal.draw(|frame| sample.draw(frame, said)).expect("it cannot fail");
        let cells = terminal.backend().buffer().content().chunks(usize::from(width));
        cells
            .map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>().trim_end().to_owned())
            .collect()
    }

    #[test]
    fn paths_and_streams_have_a_row_each_and_the_last_lines_stand_below() {
        let sample = Sample {
            at_s: 12.0,
            out_mbps: Some(19.0),
            in_mbps: None,
            limited_by: "full 97 %".to_owned(),
            paths: vec![path(0, "active", Some(42.04)), path(1, "potentially_failed", None)],
            streams: vec![stream(1), stream(2)],
        };
        let said = ["first", "second", "third"].map(str::to_owned);
        let shown = drawn(&sample, &said, (110, 12));
        assert_eq!(
            shown,
            [
                " tresse perf     12.0 s   out 19.0 Mbit/s   limited by full 97 %",
                "┌ paths ─────────────────────────────────────────────────────────────────────────────────────────────────────┐",
                "│path  from and to          state                       out  round trip   window  in flight  resent          │",
                "│   0  10.0.0.2 > 10.0.0.1  active              9.50 Mbit/s     42.0 ms   120 kB       64 B       3          │",
                "│   1  10.0.1.2 > 10.0.1.1  potentially failed  9.50 Mbit/s           -   120 kB       64 B       3          │",
                "└────────────────────────────────────────────────────────────────────────────────────────────────────────────┘",
                "┌ streams ───────────────────────────────────────────────────────────────────────────────────────────────────┐",
                "│stream          out    waiting                                                                              │",
                "│     1  9.50 Mbit/s       64 B                                                                              │",
                "│     2  9.50 Mbit/s      128 B                                                                              │",
                "└────────────────────────────────────────────────────────────────────────────────────────────────────────────┘",
                "third",
            ]
        );
    }

    #[test]
    fn a_narrow_terminal_shows_everything_but_addresses() {
        let sample =
            Sample { out_mbps: Some(9.5), paths: vec![path(0, "active", Some(42.04))], ..Sample::default() };
        assert_eq!(
            drawn(&sample, &[], (80, 5))[2..4],
            [
                "│path  state           out  round trip   window  in flight  resent             │",
                "│   0  active  9.50 Mbit/s     42.0 ms   120 kB       64 B       3             │",
            ]
        );
    }

    #[test]
    fn a_side_that_receives_has_its_paths_too() {
        let sample =
            Sample { in_mbps: Some(0.25), paths: vec![path(0, "active", None)], ..Sample::default() };
        let shown = drawn(&sample, &[], (110, 5));
        assert!(shown[2].contains("state            in  round trip"), "{shown:#?}");
        assert!(shown[3].contains("active   250 kbit/s"), "{shown:#?}");
    }

    #[test]
    fn streams_for_which_there_is_no_room_are_counted() {
        let sample = Sample {
            paths: vec![path(0, "active", None)],
            streams: (1..=40).map(stream).collect(),
            out_mbps: Some(9.5),
            ..Sample::default()
        };
        let shown = drawn(&sample, &[], (80, 60));
        assert!(shown.iter().any(|row| row.starts_with("│more             25 ")), "{shown:#?}");
        let shown = drawn(&sample, &[], (80, 14));
        assert!(shown.iter().any(|row| row.starts_with("│more             35 ")), "{shown:#?}");
        assert!(shown[13].starts_with('└'), "{shown:#?}");
        // A screen without room is no failure.
        for size in [(1, 1), (80, 2), (3, 40), (80, 5)] {
            drawn(&sample, &["said".to_owned()], size);
        }
    }
}
