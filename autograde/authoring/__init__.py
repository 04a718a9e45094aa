"""From a lesson's text to its notebooks, and the checks on both."""
