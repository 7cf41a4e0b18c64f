//go:build !unix

package rundir

// lockStates does nothing: there are no locks of folders.
func (f Folder) lockStates() (unlock func()) { return func() {} }
