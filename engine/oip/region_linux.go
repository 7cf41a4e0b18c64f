package oip

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// A region is memory that this process and a server on the same machine share.
type region struct {
	client *client
	name   string
	memory []byte
}

// newRegion returns a region of a size that the server knows by its name.
func newRegion(ctx context.Context, c *client, size int) (*region, error) {
	f, err := os.CreateTemp("/dev/shm", "noether-*")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// Both sides have mapped the file when registration returns. Without a name it cannot outlive
	// the two processes.
	defer os.Remove(f.Name())
	// Blocks are reserved now: a full file system would otherwise end the process at a later write.
	if err := syscall.Fallocate(int(f.Fd()), 0, 0, int64(size)); err != nil {
		return nil, fmt.Errorf("%d bytes of shared memory: %w", size, err)
	}
	memory, err := syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	r := &region{c, filepath.Base(f.Name()), memory}
	body := fmt.Appendf(nil, `{"key": "/%s", "offset": 0, "byte_size": %d}`, r.name, size)
	if _, err := c.send(ctx, http.MethodPost, "/v2/systemsharedmemory/region/"+r.name+"/register", body, 0, 1<<20); err != nil {
		return nil, errors.Join(err, syscall.Munmap(memory))
	}
	return r, nil
}

// close frees the memory here, and on the server, which keeps it if it does not answer.
func (r *region) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if r.client.gone() == nil {
		_, _ = r.client.try(ctx, http.MethodPost, "/v2/systemsharedmemory/region/"+r.name+"/unregister", []byte("{}"), 0, 1<<20)
	}
	return syscall.Munmap(r.memory)
}
