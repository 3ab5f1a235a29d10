//! A screen that covers the terminal while a command works. Afterwards the terminal looks as before.
//!
//! Meanwhile all output is held back; it follows when the screen is closed. The terminal still handles keys, so Ctrl-C and similar keys
//! work as usual.

use std::io::{self, IsTerminal, Stderr};
use std::sync::Once;

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen};
use ratatui::{Frame, Terminal};

use crate::output;

/// An open screen, which is closed when this is dropped.
pub(crate) struct Screen {
    terminal: Terminal<CrosstermBackend<Stderr>>,
}

impl Screen {
    /// Opens a screen; `None` unless standard output and standard error are both terminals that can draw. A pipe or a file gets lines as
    /// usual.
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

    /// Redraws the screen. `render` gets the last lines that are held back, at most as many as the terminal has rows.
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

/// Restores the terminal.
fn leave() {
    // Nothing is left to do if the terminal is gone.
    let _ = execute!(io::stderr(), Show, LeaveAlternateScreen);
}

/// Restores the terminal before a panic is printed: its message would vanish with the screen.
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
