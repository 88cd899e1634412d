// Pages opened from the disk may not read each other: there, the search shows titles without the words around a hit.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
