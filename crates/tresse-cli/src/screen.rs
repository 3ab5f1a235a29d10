//! A screen: all of the terminal while a command works, which afterwards looks as before.
//!
//! Meanwhile what the command says is kept back, and follows when the screen is closed. Keys are left to the terminal, so
//! that Ctrl-C and the like mean what they always mean.

use std::io::{self, IsTerminal, Stderr};
use std::sync::Once;

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen};
use ratatui::{Frame, Terminal};

use crate::output;

/// An open screen; dropped, it is closed.
pub(crate) struct Screen {
    terminal: Terminal<CrosstermBackend<Stderr>>,
}

impl Screen {
    /// None unless standard output and standard error are both a terminal that can draw: a pipe or file gets its lines as they come.
    pub(crate) fn open() -> Option<Self> {
        let simple = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        if simple || !io::stdout().is_terminal() || !io::stderr().is_terminal() {
            return None;
        }
        let terminal = Terminal::new(CrosstermBackend::new(io::stderr())).ok()?;
        if terminal.size().ok()?.area() == 0 {
            return None;
        }
        restore_before_panics();
        execute!(io::stderr(), EnterAlternateScreen, Clear(ClearType::All), Hide).ok()?;
        output::hold();
        Some(Screen { terminal })
    }

    /// Draws it anew; `render` is given the last lines that were said, as many as the terminal has rows.
    pub(crate) fn draw(&mut self, render: impl FnOnce(&mut Frame<'_>, &[String])) -> io::Result<()> {
        let rows = usize::from(self.terminal.size()?.height);
        let said = output::held(rows);
        self.terminal.draw(|frame| render(frame, &said)).map(drop)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave();
        output::release();
    }
}

/// Gives the terminal back.
fn leave() {
    // Nothing is left to do if the terminal is gone.
    let _ = execute!(io::stderr(), Show, LeaveAlternateScreen);
}

/// Lets panics be read: their words would vanish with the screen.
fn restore_before_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let former = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if output::is_held() {
                leave();
            }
            former(panic);
        }));
    });
}
