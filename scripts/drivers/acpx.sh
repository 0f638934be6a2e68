#!/usr/bin/env bash
# Lets acpx have a scenario's first turn with an agent in the working directory:
#   acpx.sh NODE ACPX SCENARIO AGENT
# More turns would be more processes of the agent. acpx ends an agent 100 ms
# after its stdin, and kills it 1.5 s later, which is too soon for a recorder on
# a busy machine: what it ends is a script before the agent.
set -euo pipefail
node=$1 acpx=$2 scenario=$3 agent=$4
prompt=$("$node" --input-type=module -e 'import(process.argv[1]).then(({ prompts }) => console.log(prompts(process.argv[2])[0]), 0)' \
	"$(dirname "${BASH_SOURCE[0]}")/prompts.mjs" "$scenario")
before=$TMPDIR/agent
printf '#!/bin/sh\nexec 3<&0\nsetsid %q <&3 3<&- &\nwait\n' "$agent" >"$before"
chmod +x "$before"
exec "$node" "$acpx" --cwd "$PWD" --agent "$before" --approve-all exec "$prompt"
