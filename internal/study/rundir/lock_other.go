//go:build !unix

package rundir

// lockStates would lock the folder of states (saved running sums) against other processes. It does
// nothing, because this program locks folders on Unix systems only.
func (f Folder) lockStates() (unlock func()) { return func() {} }
