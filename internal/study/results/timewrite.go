package results

import (
	"fmt"
	"math/rand/v2"
	"os"
	"time"
)

// TimeWrite writes a temporary file of the given number of bytes in the folder of the states, and
// returns the time until it was on the disk. Its bytes are random, since file systems may compress.
func (f Folder) TimeWrite(bytes int) (took time.Duration, err error) {
	dir := f.Path("states")
	defer func() {
		if err != nil {
			err = fmt.Errorf("timing the disk of %s: %w", dir, err)
		}
	}()
	data := make([]byte, bytes)
	_, _ = rand.NewChaCha8([32]byte{}).Read(data) // never fails
	file, err := os.CreateTemp(dir, ".speed-*.tmp")
	if err != nil {
		return 0, err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	start := time.Now()
	if _, err := file.Write(data); err != nil {
		return 0, err
	}
	if err := file.Sync(); err != nil {
		return 0, err
	}
	return max(time.Since(start), 1), nil
}
