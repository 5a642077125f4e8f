//! Chromium without a window, driven through its DevTools protocol over a pipe.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use fairground_testing::unavailable;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Where Debian and others put it.
const BROWSERS: [&str; 4] = [
    "/usr/bin/chromium",
    "/usr/bin/chromium-browser",
    "/usr/bin/google-chrome",
    "/snap/bin/chromium",
];
/// Answers that are read while one is waited for.
const ANSWERS_MAX: usize = 10_000;

/// The bit of the Ctrl key among an event's modifiers.
const CTRL: u32 = 2;

/// How often and how long the end of the browser is waited for.
const CLOSING_POLLS: u32 = 250;
const POLL: Duration = Duration::from_millis(20);

/// A page in a browser.
#[derive(Debug)]
pub(crate) struct Browser {
    process: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
    session: Option<String>,
    sent: u64,
    _profile: TempDir,
}

impl Browser {
    /// Opens a page and waits until its script has run; `None`, with the reason noted, where there is no browser.
    pub(crate) fn open(page: &Path) -> Option<Self> {
        let Some(path) = BROWSERS.iter().find(|path| Path::new(path).exists()) else {
            unavailable("browser", format!("no Chromium at any of {BROWSERS:?}"));
            return None;
        };
        let profile = TempDir::new().expect("a folder for the browser");
        // It reads commands from descriptor 3 and writes answers to 4.
        let mut process = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 0</dev/null 1>/dev/null 2>/dev/null", path])
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"])
            .args(["--no-first-run", "--disable-dev-shm-usage", "--window-size=1200,1000"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the browser starts");
        let commands = process.stdin.take().expect("a pipe");
        let answers = BufReader::new(process.stdout.take().expect("a pipe"));
        let mut browser =
            Self { process, commands, answers, session: None, sent: 0, _profile: profile };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attached = browser.call(
            "Target.attachToTarget",
            json!({ "targetId": target["targetId"], "flatten": true }),
        );
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        browser.resize(1200, 1000, false);
        browser.call("Page.navigate", json!({ "url": format!("file://{}", page.display()) }));
        let ready = "new Promise((done) => { const look = () => document.documentElement.dataset.ready \
                     ? done(true) : setTimeout(look, 20); look(); })";
        for _ in 0..50 {
            // The blank page that was there before never gets ready: its answer is an error once it is gone.
            if browser
                .evaluate("location.protocol === 'file:'")
                .is_ok_and(|is_file| is_file == true)
            {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        assert_eq!(browser.read(ready), true, "the page's script runs to its end");
        Some(browser)
    }

    /// The value of an expression in the page, of a promise when it is kept.
    pub(crate) fn read(&mut self, expression: &str) -> Value {
        self.evaluate(expression).unwrap_or_else(|e| panic!("{expression}: {e}"))
    }

    /// The same, of a number.
    pub(crate) fn number(&mut self, expression: &str) -> f64 {
        let value = self.read(expression);
        value.as_f64().unwrap_or_else(|| panic!("{expression} is {value}"))
    }

    /// Makes the window as wide and high, and says what colours the reader likes.
    pub(crate) fn resize(&mut self, width: u32, height: u32, dark: bool) {
        let metrics =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", metrics);
        let scheme = if dark { "dark" } else { "light" };
        let feature = json!({ "name": "prefers-color-scheme", "value": scheme });
        self.call("Emulation.setEmulatedMedia", json!({ "features": [feature] }));
    }

    /// Moves the mouse to a point of the window.
    pub(crate) fn point(&mut self, (x, y): (f64, f64)) {
        self.mouse(json!({ "type": "mouseMoved", "x": x, "y": y }));
    }

    /// Turns the wheel with Ctrl held down; `delta` is towards the page below when positive.
    pub(crate) fn zoom(&mut self, (x, y): (f64, f64), delta: f64) {
        self.mouse(json!({
            "type": "mouseWheel", "x": x, "y": y, "deltaX": 0, "deltaY": delta, "modifiers": CTRL,
        }));
    }

    /// Presses and lets go of the left button at a point of the window.
    pub(crate) fn click(&mut self, at: (f64, f64)) {
        self.drag(at, at);
    }

    /// Presses the left button at a point of the window and lets go of it at another.
    pub(crate) fn drag(&mut self, from: (f64, f64), to: (f64, f64)) {
        let event = |kind: &str, (x, y): (f64, f64)| json!({ "type": kind, "x": x, "y": y, "button": "left", "buttons": 1, "clickCount": 1 });
        self.mouse(event("mousePressed", from));
        if from != to {
            self.mouse(event("mouseMoved", to));
        }
        self.mouse(event("mouseReleased", to));
    }

    /// Types a key.
    pub(crate) fn key(&mut self, key: &str) {
        let text = if key.chars().count() == 1 { key } else { "" };
        for kind in ["keyDown", "keyUp"] {
            let event = json!({ "type": kind, "key": key, "text": text });
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    fn mouse(&mut self, event: Value) {
        self.call("Input.dispatchMouseEvent", event);
    }

    fn evaluate(&mut self, expression: &str) -> Result<Value, String> {
        let parameters =
            json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.try_call("Runtime.evaluate", parameters)?;
        match answer.get("exceptionDetails") {
            Some(exception) => Err(exception.to_string()),
            None => Ok(answer["result"]["value"].clone()),
        }
    }

    fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.try_call(method, parameters).unwrap_or_else(|e| panic!("{method}: {e}"))
    }

    fn try_call(&mut self, method: &str, parameters: Value) -> Result<Value, String> {
        self.sent += 1;
        let mut command = json!({ "id": self.sent, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            command["sessionId"] = session.as_str().into();
        }
        let mut bytes = command.to_string().into_bytes();
        bytes.push(0);
        self.commands.write_all(&bytes).map_err(|e| e.to_string())?;
        for _ in 0..ANSWERS_MAX {
            let mut message = Vec::new();
            self.answers.read_until(0, &mut message).map_err(|e| e.to_string())?;
            message.pop();
            let message: Value = serde_json::from_slice(&message).map_err(|e| e.to_string())?;
            if message["id"] == self.sent {
                return match message.get("error") {
                    Some(error) => Err(error.to_string()),
                    None => Ok(message["result"].clone()),
                };
            }
        }
        Err("the browser does not answer".to_owned())
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Its children write into the profile until they are gone, too. Errors: it may be gone already.
        let _ = self.commands.write_all(b"{\"id\":0,\"method\":\"Browser.close\"}\0");
        let _ = self.commands.flush();
        for _ in 0..CLOSING_POLLS {
            if !matches!(self.process.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(POLL);
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
