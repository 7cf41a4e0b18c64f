package ort

import (
	"fmt"
	"regexp"
	"strconv"

	binding "github.com/yalue/onnxruntime_go"

	"github.com/noether-ml/noether/engine"
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

// LimitMemory bounds the memory of each later session on the CPU: its weights, its activations and
// what its operators need. A run that needs more ends with a MemoryError, and opening a session
// whose weights need more with an error that says so. free is called for each session and returns
// the bound in bytes; 0: none. Smaller bounds than 64 MiB are taken as 64 MiB. A nil function
// removes the bound. The engine supports such a bound on x86-64 only.
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
	if limit == 0 || !o.onCPU() {
		return open()
	}
	kind, err := binding.GetMemoryInfo()
	if err != nil {
		return nil, err
	}
	const unset = -1 // the default of the engine
	arena, err := binding.NewArenaCfg(int(max(limit, minMemory)), unset, unset, unset)
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

// What messages of the engine and its execution providers contain if the memory of a device is
// exceeded, and if a device is lost. Dawn, WebGPU's implementation, reports a buffer that it could
// not allocate as invalid due to a previous error. CUDA's error 2 is out of memory; 46 stands for
// an unavailable device, 700 for an illegal address, 719 for a failed launch and 999 for an unknown
// failure.
var (
	deviceMemory = regexp.MustCompile(`exceeds the max buffer size limit|\[Invalid Buffer[^\]]*\] is invalid due to a previous error|Failed to create GPU buffer|Too many storage buffers in shader|Failed to allocate memory for requested buffer|(?i:CUDA failure 2:|cudaErrorMemoryAllocation|CUDNN_STATUS_ALLOC_FAILED|CUBLAS_STATUS_ALLOC_FAILED|out of (device )?memory)`)
	deviceLost   = regexp.MustCompile(`(?i)device\]? (is|was) lost|device lost|DEVICE_LOST|DXGI_ERROR_DEVICE_(REMOVED|HUNG|RESET)|Failed to download data from buffer|CUDA failure (46|700|719|999):`)
)

var (
	failedNode  = regexp.MustCompile(`running (\S+) node\. Name:'([^']*)'`)
	outOfMemory = regexp.MustCompile(`Available memory of (\d+) is smaller than requested bytes of (\d+)`)
)

// explain returns an error of the engine for the session as one line: a MemoryError if a node
// exceeded the main memory, engine.ErrDeviceMemory or engine.ErrDeviceLost if the session's device
// failed.
func (s *Session) explain(doing string, err error) error {
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
	err = oneLine(err)
	switch text := err.Error(); {
	case s.onCPU:
	case deviceLost.MatchString(text):
		err = fmt.Errorf("%w (its driver was reset or updated, it was removed, or the machine slept): run the command again; finished work is kept (%v)", engine.ErrDeviceLost, err)
	case deviceMemory.MatchString(text):
		err = fmt.Errorf("%w for it, or cannot hold so large a tensor: use smaller batches or fewer layers, or --device cpu (%v)", engine.ErrDeviceMemory, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}
