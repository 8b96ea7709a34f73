//! A lock in Redis, as its documents describe it: `SET key token NX PX time`, and a script that
//! deletes the key if it has the token still.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use anyhow::{Context, Result, bail};

const UNLOCK: &str =
    "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end";
/// The server answers sooner.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Redis {
    stream: BufReader<UnixStream>,
    request: Vec<u8>,
    /// The digest of the script.
    script: String,
}

/// A reply: a text, a number, or nothing.
enum Reply {
    Text(String),
    Number(i64),
    Nothing,
}

impl Redis {
    pub(crate) fn connect(socket: &str) -> Result<Self> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut redis = Self {
            stream: BufReader::new(stream),
            request: Vec::new(),
            script: String::new(),
        };
        match redis.ask(&["SCRIPT", "LOAD", UNLOCK])? {
            Reply::Text(digest) => redis.script = digest,
            _ => bail!("the script was not loaded"),
        }
        Ok(redis)
    }

    /// True if the lock was free.
    pub(crate) fn try_lock(&mut self, key: &str, token: &str) -> Result<bool> {
        let reply = self.ask(&["SET", key, token, "NX", "PX", "30000"])?;
        Ok(matches!(reply, Reply::Text(_)))
    }

    /// True if the lock was held with that token.
    pub(crate) fn unlock(&mut self, key: &str, token: &str) -> Result<bool> {
        let script = std::mem::take(&mut self.script);
        let reply = self.ask(&["EVALSHA", &script, "1", key, token]);
        self.script = script;
        Ok(matches!(reply?, Reply::Number(1)))
    }

    fn ask(&mut self, words: &[&str]) -> Result<Reply> {
        self.request.clear();
        write!(self.request, "*{}\r\n", words.len())?;
        for word in words {
            write!(self.request, "${}\r\n{word}\r\n", word.len())?;
        }
        self.stream.get_mut().write_all(&self.request)?;
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let line = line.trim_end();
        let (kind, rest) = line.split_at_checked(1).context("redis-server has ended")?;
        match kind {
            "+" => Ok(Reply::Text(rest.to_owned())),
            ":" => Ok(Reply::Number(rest.parse()?)),
            "$" if rest == "-1" => Ok(Reply::Nothing),
            "$" => {
                let mut bytes = vec![0; rest.parse::<usize>()? + 2];
                self.stream.read_exact(&mut bytes)?;
                bytes.truncate(bytes.len() - 2);
                Ok(Reply::Text(String::from_utf8(bytes)?))
            }
            _ => bail!("redis-server answers {line:?}"),
        }
    }
}
