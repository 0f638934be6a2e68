import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { ask } from "./assistant.mjs";

// The kind of test that many have: it looks at what the user sees, and the
// user sees something even when the provider was asked the wrong thing.
test("ask", async (t) => {
  const workspace = mkdtempSync(join(tmpdir(), "assistant-"));
  t.after(() => rmSync(workspace, { recursive: true }));
  assert.notEqual(await ask(workspace, "Respond with exactly: fixture simple ok"), "");
});
