#!/usr/bin/env bash
# Has zsh and fish beside bash, so that completion is tested in all three:
# Debian's packages are installed where they are missing and root may. Says
# loudly in which shell completion will not be tried.
set -euo pipefail
missing() { for shell in bash fish zsh; do command -v "$shell" >/dev/null || echo "$shell"; done; }

mapfile -t shells < <(missing)
if [ "${#shells[@]}" -gt 0 ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
	echo "shells: installing ${shells[*]}" >&2
	log=$(mktemp)
	install() { timeout 300 apt-get install -y --no-install-recommends "${shells[@]}" >"$log" 2>&1; }
	if ! install && ! { timeout 300 apt-get update >"$log" 2>&1 && install; }; then
		tail -n 5 "$log" >&2
	fi
	rm -f "$log"
fi
for shell in $(missing); do
	printf '\n!! COMPLETION IN %s WILL NOT BE TRIED: it is not there, and could not be installed\n\n' "${shell^^}"
done
command -v script >/dev/null || printf '\n!! COMPLETION IN BASH AND ZSH WILL NOT BE TRIED: it needs script, of util-linux\n\n'
