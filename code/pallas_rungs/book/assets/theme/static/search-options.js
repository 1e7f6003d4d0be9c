// What the search script expects to find set, and a choice for pages opened from disk: those may
// not fetch their neighbours, so their results are listed without excerpts.
var SPHINX_HIGHLIGHT_ENABLED = false;
if (location.protocol === "file:") { DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false; }
