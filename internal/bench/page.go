package main

import _ "embed"

// page is docs/performance.md around its results.
//
//go:embed page.md
var page string
