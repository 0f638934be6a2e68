"""Asks an agent one question over the Agent Client Protocol (ACP)."""

import json
import subprocess

# What a user reads when the agent fails: an assistant that is away is no
# reason to crash.
UNAVAILABLE = "The assistant is not available."

CAPABILITIES = {
    "fs": {"readTextFile": False, "writeTextFile": False},
    "terminal": False,
}


class Agent:
    """One agent process: JSON-RPC 2.0, one message a line."""

    def __init__(self, command, workspace):
        self.process = subprocess.Popen(
            command, cwd=workspace, text=True, encoding="utf-8",
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )
        self.last_id = 0
        self.text = ""

    def request(self, method, **params):
        """Returns the result; what the agent says meanwhile adds to text."""
        self.last_id += 1
        message = {"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params}
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            message = json.loads(line)
            if message.get("method") == "session/update":
                update = message["params"]["update"]
                if update["sessionUpdate"] == "agent_message_chunk":
                    self.text += update["content"]["text"]
            elif message.get("id") == self.last_id:
                return message["result"]  # KeyError: the agent refused
        raise EOFError("the agent has ended")

    def close(self):
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass  # it has ended
        self.process.stdout.read()
        self.process.stdout.close()
        return self.process.wait()


def ask(workspace, prompt, command=("codex-acp",)):
    """Returns the answer to a prompt about the workspace."""
    agent = None
    try:
        agent = Agent(command, workspace)
        agent.request(
            "initialize", protocolVersion=1, clientCapabilities=CAPABILITIES,
            clientInfo={"name": "driver", "version": "1"},
        )
        session = agent.request("session/new", cwd=workspace, mcpServers=[])
        agent.request(
            "session/prompt", sessionId=session["sessionId"],
            prompt=[{"type": "text", "text": prompt}],
        )
        return agent.text
    except (OSError, EOFError, KeyError):
        return UNAVAILABLE
    finally:
        if agent:
            agent.close()
