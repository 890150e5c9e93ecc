#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Makes `configure` from configure.ac; only autoconf is needed, no automake.
set -e
cd "$(dirname "$0")"
rm -rf autom4te.cache
autoconf
rm -rf autom4te.cache
