# Sourced by install, start and stop. Every value can come from the environment.
# shellcheck shell=bash disable=SC2034
cache=${SQE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/sqe}
trino_version=476
sqlite_version=3.46.1.3
ranger_version=2.9.0
# What is kept of the server's plugins.
trino_plugins="iceberg ranger"
home=$cache/trino-$trino_version

# jdk prints the folder of a JDK that Trino accepts.
jdk() {
	local d major
	for d in "${TRINO_JAVA_HOME:-}" "${JAVA_HOME:-}" /usr/lib/jvm/*; do
		[ -x "$d/bin/java" ] && [ -r "$d/release" ] || continue
		major=$(sed -n 's/^JAVA_VERSION="\([0-9]*\).*/\1/p' "$d/release")
		if [ "${major:-0}" -ge 24 ]; then
			echo "$d"
			return
		fi
	done
	echo "Trino $trino_version needs a JDK of version 24 or newer: install one, or set TRINO_JAVA_HOME" >&2
	return 1
}
