//go:build !unix

package rundir

// lockStates does nothing, because this system cannot lock folders.
func (f Folder) lockStates() (unlock func()) { return func() {} }
