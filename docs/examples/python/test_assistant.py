import tempfile
import unittest

from assistant import ask


class AskTest(unittest.TestCase):
    # The kind of test that many have: it looks at what the user sees, and the
    # user sees something even when the agent was asked the wrong thing.
    def test_ask(self):
        with tempfile.TemporaryDirectory() as workspace:
            self.assertNotEqual(ask(workspace, "Respond with exactly: fixture simple ok"), "")


if __name__ == "__main__":
    unittest.main()
