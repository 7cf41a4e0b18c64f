//go:build unix && !linux

package supervise

import "os"

func newNotes() (*os.File, error) {
	f, err := os.CreateTemp("", "noether-notes-")
	if err != nil {
		return nil, err
	}
	return f, os.Remove(f.Name())
}
