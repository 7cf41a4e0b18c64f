//go:build !unix

package fetch

import "context"

// lockFor does nothing: files are locked on Unix only.
func lockFor(context.Context, string) (unlock func()) { return func() {} }
