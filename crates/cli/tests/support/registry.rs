//! A registry of packages that a test makes, served by a stand-in for curl.

use std::path::PathBuf;
use std::process::{Command, Output};

use super::Files;

/// Serves what `web/` has, whatever the host.
const CURL: &str =
    "#!/bin/sh\nfor url; do :; done\nexec cat \"$(dirname \"$0\")/../web/${url##*/}\"\n";

#[derive(Debug)]
pub(crate) struct Registry {
    files: Files,
}

impl Registry {
    /// A registry with packages of headers, of which a scheduler's lock file is made.
    pub(crate) fn new() -> Registry {
        let registry = Registry { files: Files::new() };
        registry.script("mkdir bin web src outside in");
        registry.files.write("bin/curl", CURL);
        registry.script("chmod 755 bin/curl");
        let scx = "mkdir -p bpf_h/scx bpf_h/bpf-compat bpf_h/vmlinux\n\
                   echo 'typedef unsigned int u32;' > bpf_h/vmlinux/vmlinux.h\n\
                   echo '#include <vmlinux.h>' > bpf_h/scx/common.bpf.h\n\
                   chmod 6755 bpf_h/scx/common.bpf.h";
        let libbpf = "mkdir -p libbpf/src\necho > libbpf/src/bpf_helpers.h";
        registry.publish("libbpf-sys", libbpf);
        let lock = registry.locked("libbpf-sys");
        registry.publish("scx_cargo", &format!("{scx}\nprintf '{lock}' > Cargo.lock"));
        registry
    }

    /// Publishes version 1.0.0 of a package, which a script makes in its folder.
    pub(crate) fn publish(&self, name: &str, script: &str) {
        let folder = format!("{name}-1.0.0");
        self.script(&format!("mkdir src/{folder}; cd src/{folder}\n{script}"));
        self.pack(name, &format!("tar -czf ../web/{folder}.crate {folder}"));
    }

    /// Publishes version 1.0.0 of a package, which a script writes to `../web/NAME-1.0.0.crate`.
    pub(crate) fn pack(&self, name: &str, script: &str) {
        self.script(&format!("cd src\n{script}"));
        let line = r#"{"name":"NAME","vers":"1.0.0","cksum":"SUM"}"#;
        let sum = self.sum(name);
        self.files.write(&format!("web/{name}"), line.replace("NAME", name).replace("SUM", &sum));
    }

    /// Publishes a scheduler with one source; the script changes what it has.
    pub(crate) fn publish_scheduler(&self, name: &str, script: &str) {
        let lock: Vec<String> = ["scx_cargo", "libbpf-sys"].map(|name| self.locked(name)).into();
        let all = format!(
            "echo 'main() {{ skel(\"main.bpf.c\") }}' > build.rs\n\
             printf '#include <scx/common.bpf.h>\\nu32 x = 1;\\n' > main.bpf.c\n\
             printf '{}' > Cargo.lock\n{script}",
            lock.concat()
        );
        self.publish(name, &all);
    }

    fn locked(&self, name: &str) -> String {
        let sum = self.sum(name);
        format!("[[package]]\\nname = \"{name}\"\\nversion = \"1.0.0\"\\nchecksum = \"{sum}\"\\n")
    }

    fn sum(&self, name: &str) -> String {
        let text = self.script(&format!("sha256sum web/{name}-1.0.0.crate"));
        text.split_whitespace().next().expect("a sum").to_owned()
    }

    /// `sched fetch` with a new cache.
    pub(crate) fn fetch(&self, names: &[&str]) -> Output {
        let _ = std::fs::remove_dir_all(self.cache());
        let path = std::env::var("PATH").expect("PATH");
        Command::new(env!("CARGO_BIN_EXE_fairground"))
            .args(["sched", "fetch"])
            .args(names)
            .env("PATH", format!("{}:{path}", self.path("bin").display()))
            .env("FAIRGROUND_CACHE", self.cache())
            .output()
            .expect("it runs")
    }

    /// The cache, in a folder of its own: `in/`.
    pub(crate) fn cache(&self) -> PathBuf {
        self.path("in/cache")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.files.path(name)
    }

    fn script(&self, text: &str) -> String {
        let output = Command::new("sh")
            .args(["-ec", text])
            .current_dir(self.files.path(""))
            .output()
            .expect("a shell");
        assert!(output.status.success(), "{text}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    }
}
