// Package page tests the page of the admin port in headless Chromium, by what a
// person does: a link's delay is changed and the chart moves, a write is opened,
// one link is looked at, all of it by keyboard, on a phone, in the dark.
//
//	Go driver --> wirewait lab mongodb (a process) <-- /v1 -- the page in Chromium
//	                                   ^------------- /v1 -- the test, to compare
//
// With WIREWAIT_SHOTS=DIRECTORY it writes the pictures of docs/page.md (make page).
package page
