#!/bin/sh
# In the fresh root of check-packages.sh: installs the packages, uses them, purges them, and looks at what is left.
set -eu
fail() { echo "check-packages: $*" >&2; exit 1; }
# All files but those of this check itself, and the diaries of dpkg.
list() { find / -xdev \( -path /packages -o -path /programs -o -path /tmp -o -path /proc -o -path /sys -o -path /dev \) -prune -o -print \
    | grep -v -e '^/var/log/' -e '^/var/lib/dpkg/.*-old$' -e '^/var/lib/dpkg/lock' -e '^/var/lib/dpkg/triggers/' -e '^/var/cache/man/' -e '^/var/cache/ldconfig/' | LC_ALL=C sort; }
list > /tmp/before
# Configurations of linkers and shells are compared whole.
sums() { find /etc -xdev -type f ! -name ld.so.cache -exec md5sum {} + | LC_ALL=C sort -k 2; }
sums > /tmp/sums-before

echo "== installed"
dpkg -i /packages/*.deb > /tmp/dpkg.log 2>&1 || { cat /tmp/dpkg.log >&2; fail "the packages cannot be installed"; }
dpkg --audit | grep . && fail "dpkg finds a package that is not whole"
hamlyn --version
for library in libhamlyn libhamlyn_am libhamlyn_udm; do
    ldconfig -p | grep -q "$library\.so\.0 " || fail "the loader does not know $library.so.0"
done

echo "== a program, by pkg-config"
cd /programs
works() { said=$("$@") || fail "$*: it failed"; [ "$said" = "it works" ] || fail "$*: it says $said"; }
cc -Wall -Werror installed.c -o /tmp/by-pkg-config $(pkg-config --cflags --libs hamlyn)
works /tmp/by-pkg-config
cc -Wall -Werror installed.c -o /tmp/static $(pkg-config --cflags hamlyn) -Wl,-Bstatic -lhamlyn -Wl,-Bdynamic $(pkg-config --static --libs hamlyn | sed 's/-lhamlyn//')
works /tmp/static
c++ -std=c++17 -Wall -Werror installed.cpp -o /tmp/cpp $(pkg-config --cflags --libs hamlyn)
works /tmp/cpp

echo "== programs, by CMake"
cmake -S cmake -B /tmp/build -DSOURCES=/programs -DWANTED=0.1 > /tmp/cmake.log 2>&1 && cmake --build /tmp/build >> /tmp/cmake.log 2>&1 \
    || { cat /tmp/cmake.log >&2; fail "CMake does not find the library, or cannot build with it"; }
for program in shared_c shared_cpp static_c; do works /tmp/build/$program; done

echo "== Active Messages"
cc -Wall -Werror am/hello.c -o /tmp/hello $(pkg-config --cflags --libs hamlyn_am)
/tmp/hello serve &
server=$!
said=$(/tmp/hello ask 20 22) || fail "a program of Active Messages cannot ask another"
[ "$said" = 42 ] || fail "Active Messages add 20 and 22 to $said"
wait $server || fail "a program of Active Messages cannot answer another"
cc -Wall -Werror am/table.c -o /tmp/table $(pkg-config --cflags hamlyn_am) -Wl,-Bstatic -lhamlyn_am -Wl,-Bdynamic $(pkg-config --static --libs hamlyn_am | sed 's/-lhamlyn_am//')
hamlyn run -n 3 /tmp/table 1000 > /tmp/table.log || fail "a job of Active Messages fails"
grep -qx "3 processes added 1000 each: 3000" /tmp/table.log || fail "a job of Active Messages says $(cat /tmp/table.log)"

echo "== User Direct Messaging and CRL"
cc -Wall -Werror udm/installed.c -o /tmp/udm $(pkg-config --cflags --libs hamlyn_udm)
/tmp/udm || fail "a program of User Direct Messaging and CRL ends with $?"
cc -Wall -Werror udm/census.c -o /tmp/census $(pkg-config --cflags hamlyn_udm) -Wl,-Bstatic -lhamlyn_udm -Wl,-Bdynamic $(pkg-config --static --libs hamlyn_udm | sed 's/-lhamlyn_udm//')
hamlyn run -n 3 /tmp/census 1000 > /tmp/census.log || fail "a job of User Direct Messaging fails"
said=$(awk -F: '{ sum += $NF } END { print sum }' /tmp/census.log)
[ "$said" = 3000 ] || fail "a job of User Direct Messaging counts $said of 3000 throws"
cc -Wall -Werror udm/relax.c -o /tmp/relax $(pkg-config --cflags --libs hamlyn_udm) -lm
hamlyn run -n 3 /tmp/relax 4 > /tmp/relax.log || fail "a job of CRL fails"
[ "$(grep -c '^.*piece [0-2] ends at' /tmp/relax.log)" = 3 ] || fail "a job of CRL says $(cat /tmp/relax.log)"

echo "== the demonstration"
hamlyn demo > /tmp/demo.log 2>&1 || { cat /tmp/demo.log >&2; fail "hamlyn demo failed"; }
tail -1 /tmp/demo.log

echo "== manual pages and completions"
for page in hamlyn hamlyn-demo hamlyn-ping hamlyn-keygen splitcc; do
    man -w $page > /dev/null || fail "there is no manual page $page"
done
# Pages are read where the root was made to keep manuals; the formatter is the judge.
for page in hamlyn splitcc; do
    man --warnings -E UTF-8 -l /usr/share/man/man1/$page.1.gz 2> /tmp/man.log > /tmp/man.txt
    [ -s /tmp/man.log ] && { cat /tmp/man.log >&2; fail "the manual page $page is not sound"; }
    grep -q SYNOPSIS /tmp/man.txt || fail "the manual page $page shows nothing"
done
bash -c '. /usr/share/bash-completion/bash_completion && _completion_loader hamlyn; COMP_WORDS=(hamlyn dem); COMP_CWORD=1; _hamlyn hamlyn dem hamlyn; [ "${COMPREPLY[*]}" = demo ]' \
    || fail "bash does not complete hamlyn dem"
for file in /usr/share/zsh/vendor-completions/_hamlyn /usr/share/fish/vendor_completions.d/hamlyn.fish; do
    [ -s $file ] || fail "there is no $file"
done

echo "== Split-C"
# The program of docs/split-c.md, in one process and in three.
splitcc --version > /dev/null || fail "splitcc does not start"
splitcc -O2 -o /tmp/sum sum.sc || fail "splitcc cannot compile sum.sc"
said=$(/tmp/sum) || fail "a Split-C program fails by itself"
[ "$said" = "1 processors, sum 1" ] || fail "a Split-C program by itself says $said"
said=$(hamlyn run -n 3 /tmp/sum) || fail "a Split-C program of three processes fails"
echo "$said" | grep -q "3 processors, sum 6" || fail "a Split-C program of three processes says $said"

if ls /packages/*.whl > /dev/null 2>&1; then
    echo "== the Python wheel"
    # A folder for it, and the interpreter of Debian: no other package is there.
    export PYTHONDONTWRITEBYTECODE=1
    python3 -m venv --without-pip /tmp/venv
    # Of all wheels pip takes the one for this interpreter and this C library.
    python3 -m pip --python /tmp/venv/bin/python install --quiet --no-index --no-deps --find-links /packages hamlyn \
        || fail "no wheel can be installed: $(ls /packages/*.whl)"
    /tmp/venv/bin/python -c 'import hamlyn; print("hamlyn", hamlyn.__version__)' || fail "the wheel cannot be imported"
    export HAMLYN_NAMESPACE=wheel
    /tmp/venv/bin/python /programs/python/log.py collect > /tmp/collected &
    collector=$!
    printf 'it works\nfrom end to end\n' | /tmp/venv/bin/python /programs/python/log.py send || fail "a Python program cannot send"
    wait $collector || fail "a Python program cannot receive"
    [ "$(cat /tmp/collected)" = "$(printf 'it works\nfrom end to end')" ] || fail "a Python program received $(cat /tmp/collected)"
    # The same example in C, from the packages, understands it.
    cc -Wall -Werror /programs/c/log.c -o /tmp/log $(pkg-config --cflags --libs hamlyn)
    /tmp/log collect > /tmp/collected &
    collector=$!
    echo "from Python to C" | /tmp/venv/bin/python /programs/python/log.py send || fail "a Python program cannot send to one in C"
    wait $collector || fail "a program in C cannot receive from Python"
    [ "$(cat /tmp/collected)" = "from Python to C" ] || fail "a program in C received $(cat /tmp/collected)"
    unset HAMLYN_NAMESPACE
fi

echo "== purged"
dpkg --purge $(dpkg-query -W -f '${Package} ${Source}\n' | awk '$1 == "hamlyn" || $2 == "hamlyn" { print $1 }') > /tmp/purge.log 2>&1 || { cat /tmp/purge.log >&2; fail "the packages cannot be purged"; }
list > /tmp/after
sums > /tmp/sums-after
diff /tmp/before /tmp/after || fail "files are left, or gone"
diff /tmp/sums-before /tmp/sums-after || fail "a configuration was changed"
ldconfig -p | grep hamlyn && fail "the loader still knows the library"
ls -d /dev/shm/* 2>/dev/null && fail "shared memory is left"
echo "== nothing is left behind"
