// A box that scrolls must be a tab stop, or the keyboard cannot scroll it. The theme looks once after the window has
// changed, sometimes before the page has come to rest; this looks whenever a box has changed.
const watch = new ResizeObserver(changes => {
  for (const { target: box } of changes) box.tabIndex = box.scrollWidth > box.clientWidth ? 0 : -1;
});
document.querySelectorAll("pre, .pst-scrollable-table-container").forEach(box => watch.observe(box));

// Search fetches each hit to show an excerpt of it. A page opened from disk may fetch nothing.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
