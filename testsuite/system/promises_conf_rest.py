# SPDX-License-Identifier: GPL-3.0-or-later
"""The sentences of rsyncd.conf(5) that no row of promises_conf_rows.py shows, and why, or which other test does."""

ADVICE = "advice"
REASON = "reason"         # why something is so, or what follows from what other sentences say
HISTORY = "history"
REFERENCE = "reference"   # to another section or page, or to what comes with the source of stock rsync
EXAMPLE = "example"

# What is none of these words is a test, or the reason why there is none.
NO_PROMISE = (ADVICE, REASON, HISTORY, REFERENCE, EXAMPLE)

REST = {
    "NAME": {"1": REFERENCE},
    "SYNOPSIS": {"1 2": REFERENCE},
    "DESCRIPTION": {"1 2": REASON},
    "LAUNCHING THE RSYNC DAEMON": {"5": "test_daemon.py", "6 7": "test_packaging.py", "8-13": ADVICE},
    "GLOBAL PARAMETERS": {"7": REASON, "8": "it is not so: a row shows what both do"},
    "motd file": {"2": REASON},
    "socket options": {"1": ADVICE, "3": REFERENCE},
    "MODULE PARAMETERS": {"8": REFERENCE},
    "use chroot": {"5": HISTORY, "9 10 19 20": ADVICE, "11": REFERENCE},
    "daemon chroot": {"4": ADVICE},
    "proxy protocol": {"5-8 10": ADVICE},
    "name converter": {"6": REASON, "7 8": REFERENCE},
    "numeric ids": {"6": ADVICE},
    "munge symlinks": {"12": REFERENCE},
    "insecure links": {"5": REASON, "6": ADVICE, "7": REASON},
    "charset": {"6": REASON},
    "max connections": {"5": REFERENCE},
    "log file": {"2": REASON},
    "max verbosity": {"5": REFERENCE, "6": "test_debug_output.py"},
    "write only": {"5": ADVICE},
    "open noatime": {"2 3": REASON},
    "list": {"3": REASON},
    "uid": {"5": REFERENCE},
    "daemon uid": {"3": REFERENCE},
    "daemon gid": {"3": REFERENCE},
    "filter": {"4 10": REASON},
    "exclude": {"4": REFERENCE},
    "include": {"3": REFERENCE},
    "exclude from": {"3": REFERENCE},
    "include from": {"3": REFERENCE},
    "auth users": {"24-26": REFERENCE},
    "auth digest": {"7 9 12": REASON, "10": REFERENCE},
    "strict modes": {"5": HISTORY},
    "hosts allow": {"16 17": "test_host_lists.py"},
    "hosts deny": {"3": REFERENCE},
    "transfer logging": {"3": REFERENCE},
    "log format": {"8 9": REFERENCE, "35 36": HISTORY},
    "timeout": {"4": "ours has 600 by default: timeout in rsync-huaid.conf(5)", "5": ADVICE},
    "refuse options": {"20": ADVICE, "24": REFERENCE, "29": ADVICE},
    "dont compress": {"2-5 7 8": REASON},
    "early exec, pre-xfer exec, post-xfer exec": {
        "5": "what the daemon itself prints is not compared", "6": REFERENCE, "8": ADVICE, "27": "test_daemon_exec.py",
        "30 31 37": REASON},
    "temp dir": {"2": "needs a file system to mount inside of the module"},
    "SECURITY": {"1 2": REFERENCE, "3 6-8 11 13 15 16": ADVICE},
    "AUTHENTICATION STRENGTH": {"4-8": ADVICE},
    "SSL/TLS Daemon Setup": {"1-5 8": ADVICE, "6 7": EXAMPLE},
    "DAEMON CONFIG EXAMPLES": {"1-3": EXAMPLE},
    "FILES": {"1": "the configuration of the machine is left alone"},
    "SEE ALSO": {"1": REFERENCE},
    "BUGS": {"1 2": REFERENCE},
    "VERSION": {"1": REFERENCE},
    "CREDITS": {"1-4": REFERENCE},
    "THANKS": {"1 2": HISTORY},
    "AUTHOR": {"1-3": HISTORY, "4": REFERENCE},
}
