"""Events as invocations and case drafts, cases as events again, and calls that wait for a person."""
