"""Events as invocations and case drafts, and cases as events again."""
