//go:build program

// Package program pins the version of oauth2-proxy that the tests build.
package program

import _ "github.com/oauth2-proxy/oauth2-proxy/v7"
