package ort

import (
	"fmt"
	"regexp"
	"strconv"

	binding "github.com/yalue/onnxruntime_go"
)

// A MemoryError is the error of a node whose output does not fit in the memory that
// Runtime.LimitMemory allows.
type MemoryError struct {
	Node, Op   string
	Need, Free int64 // bytes
}

func (e *MemoryError) Error() string {
	return fmt.Sprintf("node %q (%s) needs %s more memory, and %s are free", e.Node, e.Op, bytesText(e.Need), bytesText(e.Free))
}

func bytesText(n int64) string {
	if n >= 1<<30 {
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	}
	return fmt.Sprintf("%d MiB", n>>20)
}

// LimitMemory bounds the memory of each later session on the processor: its weights, its
// activations and what its operators need. A run that needs more ends with a MemoryError. free is
// called for each session and returns the bound in bytes; 0: none. A nil function removes the
// bound. The engine supports such a bound on x86-64 only.
func (r *Runtime) LimitMemory(free func() int64) {
	if free == nil {
		r.free.Store(nil)
		return
	}
	r.free.Store(&free)
}

// FreeMemory returns the memory limit of a session that is opened now, in bytes; 0: none.
func (r *Runtime) FreeMemory() int64 {
	if free := r.free.Load(); free != nil {
		return max((*free)(), 0)
	}
	return 0
}

// minMemory is the smallest limit of a session, in bytes. With less, the engine cannot load even
// small graphs.
const minMemory = 64 << 20

// openBounded opens a session under the memory limit. The engine can limit an allocator, which a
// session takes from its global environment when it is opened. So an allocator is registered for
// each session, and sessions are opened one at a time. The session frees the allocator when it is
// closed.
func (r *Runtime) openBounded(o Options, options *binding.SessionOptions, open func() (*binding.DynamicAdvancedSession, error)) (*binding.DynamicAdvancedSession, error) {
	limit := r.FreeMemory()
	if limit == 0 || o.Device != "" && o.Device != "cpu" {
		return open()
	}
	kind, err := binding.GetMemoryInfo()
	if err != nil {
		return nil, err
	}
	arena, err := binding.NewArenaCfg(int(max(limit, minMemory)), -1, -1, -1)
	if err != nil {
		return nil, err
	}
	defer arena.Destroy()
	r.opening.Lock()
	defer r.opening.Unlock()
	if err := options.AddSessionConfigEntry("session.use_env_allocators", "1"); err != nil {
		return nil, err
	}
	if err := binding.CreateAndRegisterAllocator(kind, arena); err != nil {
		return nil, err
	}
	session, err := open()
	if failed := binding.UnregisterAllocator(kind); err == nil && failed != nil {
		_ = session.Destroy()
		return nil, failed
	}
	return session, err
}

var (
	failedNode  = regexp.MustCompile(`running (\S+) node\. Name:'([^']*)'`)
	outOfMemory = regexp.MustCompile(`Available memory of (\d+) is smaller than requested bytes of (\d+)`)
)

// explain returns an error of the engine as one line, as a MemoryError if memory was exceeded.
// doing states what was being done.
func explain(doing string, err error) error {
	if m := outOfMemory.FindStringSubmatch(err.Error()); m != nil {
		e := &MemoryError{}
		e.Free, _ = strconv.ParseInt(m[1], 10, 64)
		e.Need, _ = strconv.ParseInt(m[2], 10, 64)
		if node := failedNode.FindStringSubmatch(err.Error()); node != nil {
			e.Op, e.Node = node[1], node[2]
			return fmt.Errorf("%s: %w", doing, e)
		}
		return fmt.Errorf("%s: its weights and constants need %s more memory, and %s are free", doing, bytesText(e.Need), bytesText(e.Free))
	}
	return fmt.Errorf("%s: %w", doing, oneLine(err))
}
