// A page opened from disk may not fetch its neighbours, so results are listed without excerpts.
if (location.protocol === "file:") { DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false; }
