#!/bin/sh
# Puts the command, its manual pages and its completions where they belong:
#
#   command.sh COMMAND PREFIX [DESTDIR]
#
# Refused: a command that was not built, a relative PREFIX.
set -eu
[ $# = 2 ] || [ $# = 3 ] || { echo "usage: command.sh COMMAND PREFIX [DESTDIR]" >&2; exit 2; }
command=$1 prefix=$2 destdir=${3:-}
case $prefix in /*) ;; *) echo "command.sh: PREFIX must begin with /, not be $prefix" >&2; exit 2 ;; esac
[ -x "$command" ] || { echo "command.sh: no $command: build it first (cargo build --release -p hamlyn-cli)" >&2; exit 1; }
share=$destdir$prefix/share

install -D -m 755 "$command" "$destdir$prefix/bin/hamlyn"
install -d "$share/man/man1" "$share/bash-completion/completions" "$share/zsh/site-functions" "$share/fish/vendor_completions.d"
"$command" manual "$share/man/man1"
chmod 644 "$share/man/man1"/hamlyn*.1
"$command" completions bash > "$share/bash-completion/completions/hamlyn"
"$command" completions zsh > "$share/zsh/site-functions/_hamlyn"
"$command" completions fish > "$share/fish/vendor_completions.d/hamlyn.fish"
