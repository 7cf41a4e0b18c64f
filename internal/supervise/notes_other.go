//go:build unix && !linux

package supervise

import "os"

// newNotes returns a temporary file without a name.
func newNotes() (*os.File, error) {
	f, err := os.CreateTemp("", "noether-notes-")
	if err != nil {
		return nil, err
	}
	return f, os.Remove(f.Name())
}
