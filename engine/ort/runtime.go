package ort

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	binding "github.com/yalue/onnxruntime_go"

	"github.com/noether-ml/noether/internal/accel"
)

// A Runtime is the loaded ONNX Runtime library.
type Runtime struct {
	path, version  string
	providers      []string
	capi           *capi
	starting       sync.Mutex   // held while the first session is created
	started        atomic.Bool  // a session has been created
	noAcceleration atomic.Bool  // later sessions do not use the operators of package accel
	limit          atomic.Int64 // time of one run of later sessions, in nanoseconds; 0: no limit
	opening        sync.Mutex   // held while a session takes its allocator from global state
	// turn is full while a session uses the WebGPU device. All sessions share that device, and ONNX
	// Runtime does not lock it.
	turn    chan struct{}
	notes   notes
	watcher atomic.Pointer[Watcher]
	// free returns the memory limit of a session in bytes, 0 for none; may be nil.
	free atomic.Pointer[func() int64]
}

// loaded is the library of the process. There can be only one, since its state is global.
var loaded struct {
	sync.Mutex
	runtime *Runtime
}

// Load loads the library at path, as Find returns it. A process has one Runtime: Load of the same
// path returns it again, and Load of another path is an error. The library must be ONNX Runtime
// 1.24 or later.
func Load(path string) (*Runtime, error) {
	if strings.ContainsAny(path, `/\`) {
		abs, err := filepath.Abs(path)
		if err != nil {
			return nil, fmt.Errorf("loading ONNX Runtime: %w", err)
		}
		path = abs
	}
	loaded.Lock()
	defer loaded.Unlock()
	if rt := loaded.runtime; rt != nil {
		if rt.path != path {
			return nil, fmt.Errorf("loading ONNX Runtime from %s: this process has already loaded %s", path, rt.path)
		}
		return rt, nil
	}
	if err := disableTelemetry(); err != nil {
		return nil, fmt.Errorf("loading ONNX Runtime: %w", err)
	}
	version, providers, api, err := inspectLibrary(path)
	if err != nil {
		return nil, fmt.Errorf("loading ONNX Runtime: %s: %w", path, err)
	}
	binding.SetSharedLibraryPath(path)
	// The library would log every error to the terminal as well.
	if err := binding.InitializeEnvironment(binding.WithLogLevelFatal()); err != nil {
		return nil, fmt.Errorf("loading ONNX Runtime: %s: %w", path, oneLine(err))
	}
	if err := accel.Load(api); err != nil {
		return nil, fmt.Errorf("loading ONNX Runtime: %s: %w", path, oneLine(err))
	}
	if telemetryDisabled() {
		// On Windows the variable has no effect. A library without telemetry fails here, without
		// effect.
		_ = binding.DisableTelemetry()
	}
	functions, err := newCAPI(api)
	if err != nil {
		return nil, fmt.Errorf("loading ONNX Runtime: %s: %w", path, err)
	}
	loaded.runtime = &Runtime{path: path, version: version, providers: providers, capi: functions, turn: make(chan struct{}, 1)}
	return loaded.runtime, nil
}

// telemetryVariable is the environment variable that turns off the telemetry of ONNX Runtime on
// systems other than Windows. From 1.29 on, Microsoft's builds send events about each process and
// session, such as the name of the model's file and hashes of its graph and weights.
const telemetryVariable = "ORT_DISABLE_TELEMETRY"

// disableTelemetry turns off the library's telemetry, unless the user has set the variable. It must
// be called before the library is loaded: later calls do not prevent the event about the process.
func disableTelemetry() error {
	if _, set := os.LookupEnv(telemetryVariable); set {
		return nil
	}
	return os.Setenv(telemetryVariable, "1")
}

// telemetryDisabled reports whether the variable turns telemetry off. The library takes other
// values for a wish to have it.
func telemetryDisabled() bool {
	value := os.Getenv(telemetryVariable)
	return value == "1" || strings.EqualFold(value, "true")
}

// DisableAcceleration makes later sessions use the operators of ONNX Runtime only, not those of
// package accel, as Options.NoAcceleration does.
func (r *Runtime) DisableAcceleration() { r.noAcceleration.Store(true) }

// LimitRuns sets a time limit for later sessions: a run that takes longer ends with a TimeoutError,
// and so does opening a session that takes longer. The engine ends a run between operators. A
// single operator that takes longer continues in the background, with its threads and memory. 0 is
// no limit.
func (r *Runtime) LimitRuns(limit time.Duration) { r.limit.Store(int64(limit)) }

// RunLimit returns the time limit that LimitRuns has set, or 0.
func (r *Runtime) RunLimit() time.Duration { return time.Duration(r.limit.Load()) }

// A Watcher is told which models the engine works on, so that another process knows them if this
// one crashes.
type Watcher interface {
	// Enter is called before the engine works on the model in a file, and leave after it.
	Enter(model string) (leave func())
	// Crashed returns the error of a model on which the engine has crashed, or nil. The engine then
	// opens no session for it.
	Crashed(model string) error
}

// Watch sets the watcher.
func (r *Runtime) Watch(w Watcher) { r.watcher.Store(&w) }

// enter tells the watcher that the engine works on the model in a file; "" is none.
func (r *Runtime) enter(model string) (leave func()) {
	if w := r.watcher.Load(); w != nil && model != "" {
		return (*w).Enter(model)
	}
	return func() {}
}

// crashed returns Watcher.Crashed of the model in a file.
func (r *Runtime) crashed(model string) error {
	if w := r.watcher.Load(); w != nil {
		return (*w).Crashed(model)
	}
	return nil
}

// Version returns the library's version, for instance "1.30.0".
func (r *Runtime) Version() string { return r.version }

// Providers returns the library's execution providers by their ONNX Runtime names, for instance
// "CPUExecutionProvider".
func (r *Runtime) Providers() []string { return slices.Clone(r.providers) }
