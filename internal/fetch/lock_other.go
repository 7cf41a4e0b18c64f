//go:build !unix

package fetch

import "context"

// lockFor returns at once: there are no locks.
func lockFor(context.Context, string) (unlock func()) { return func() {} }
