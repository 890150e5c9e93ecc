# SPDX-License-Identifier: GPL-3.0-or-later
# Sourced by ./try and ./check: installs what a fresh Debian or Ubuntu lacks, and says so; elsewhere it only says what is missing.

BUILD_PACKAGES="gcc make autoconf pkg-config libc6-dev libpopt-dev zlib1g-dev liblz4-dev libzstd-dev libxxhash-dev nettle-dev libidn2-dev"
TRY_PACKAGES="rsync python3"
CHECK_PACKAGES="$TRY_PACKAGES python3-pytest python3-pytest-xdist clang clang-format llvm libcmocka-dev acl attr e2fsprogs xfsprogs mount strace git"
CHECK_PACKAGES="$CHECK_PACKAGES rsnapshot ftpsync systemd logrotate fail2ban"
CHECK_PACKAGES="$CHECK_PACKAGES debhelper lintian systemd-container mandoc man-db"

is_debian() {
	[ -r /etc/os-release ] && (. /etc/os-release && case " $ID ${ID_LIKE:-} " in *" debian "* | *" ubuntu "*) true ;; *) false ;; esac)
}

# as_root COMMAND...: directly, or through sudo.
as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	else
		sudo "$@"
	fi
}

missing_packages() {
	for package; do
		dpkg-query -W -f='${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed || printf '%s ' "$package"
	done
}

install_packages() {
	echo "Installing: $*"
	as_root apt-get update -qq </dev/null &&
		as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" </dev/null >/dev/null || {
		echo "That did not work. As root it would be: apt-get install $*" >&2
		exit 1
	}
}

# need_packages NAME...: makes sure of them; on another system names them and goes on.
need_packages() {
	if is_debian; then
		missing=$(missing_packages "$@")
		[ -z "$missing" ] || install_packages $missing
	else
		echo "This is neither Debian nor Ubuntu. If a step fails, install what your system calls these packages:"
		echo "$*" | fold -s -w 100 | sed 's/^/    /'
	fi
}

# The libraries of clang's sanitizers: the package's name holds clang's version.
need_clang_runtime() {
	if is_debian && ! [ -e "$(clang -print-file-name=libclang_rt.fuzzer-$(uname -m).a 2>/dev/null)" ] &&
		! ls "$(clang -print-resource-dir)"/lib/*/libclang_rt.fuzzer* >/dev/null 2>&1; then
		version=$(clang -dumpversion)
		install_packages "libclang-rt-${version%%.*}-dev"
	fi
}
