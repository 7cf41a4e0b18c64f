package ort

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"time"
	"unsafe"

	binding "github.com/yalue/onnxruntime_go"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/ort/accel"
)

// Options are the options of a session. The zero Options are suitable for most graphs.
type Options struct {
	// Threads is the number of threads of one operator; 0: one for each core.
	Threads int
	// Device is "cpu" (default), "cuda", "tensorrt", "coreml", "openvino" or "directml".
	Device string
	// ExternalDir is the folder of the external weights of a graph in memory.
	ExternalDir string
	// Verbatim executes every node of the graph. Without it, nodes are folded, fused and removed if
	// the outputs stay the same. Verbatim is slower, but reports every node that cannot be
	// computed.
	Verbatim bool
	// NoAcceleration disables the native operators of package accel, which replace slower standard
	// ones. They are used on the processor, for graphs of NewSession, and not with Verbatim.
	NoAcceleration bool
	// Spin lets the engine's threads wait busily for the next operator. That is some per cent
	// faster for runs in close succession, and slower if the caller computes on the same cores in
	// between.
	Spin bool
}

// A Session executes one graph.
type Session struct {
	inputs, outputs []string
	session         *binding.DynamicAdvancedSession
	limit           time.Duration // of one run; 0: none
}

// A TimeoutError is the error of a run that Runtime.LimitRuns ended.
type TimeoutError struct{ Limit time.Duration }

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("running a graph: it did not end within the time limit of %v", e.Limit)
}

// NewSession returns a session for a graph in memory or read from a file. Its inputs and outputs
// are those of the graph, in order.
func (r *Runtime) NewSession(m *onnx.Model, o Options) (*Session, error) {
	if o.ExternalDir == "" {
		o.ExternalDir = m.ExternalDir()
	}
	var err error
	if (o.Device == "" || o.Device == "cpu") && !o.Verbatim && !o.NoAcceleration && !r.plain.Load() {
		if m, err = accel.Rewrite(m); err != nil {
			return nil, fmt.Errorf("making a session: %w", err)
		}
	}
	data, err := m.Bytes()
	if err != nil {
		return nil, fmt.Errorf("making a session: %w", err)
	}
	return r.NewSessionFromBytes(data, names(m.Inputs()), names(m.Outputs()), o)
}

func names(ports []onnx.Port) []string {
	list := make([]string, len(ports))
	for i, p := range ports {
		list[i] = p.Name
	}
	return list
}

// NewSessionFromBytes returns a session for a serialised graph, which it does not retain. inputs
// and outputs are names of the graph's inputs and outputs, in the order of the arguments of Run.
func (r *Runtime) NewSessionFromBytes(graph []byte, inputs, outputs []string, o Options) (*Session, error) {
	return r.newSession(inputs, outputs, o, func(so *binding.SessionOptions) (*binding.DynamicAdvancedSession, error) {
		return binding.NewDynamicAdvancedSessionWithONNXData(graph, inputs, outputs, so)
	})
}

// NewSessionFromFile is NewSessionFromBytes for a graph in a file. External weights are relative to
// its folder.
func (r *Runtime) NewSessionFromFile(path string, inputs, outputs []string, o Options) (*Session, error) {
	s, err := r.newSession(inputs, outputs, o, func(so *binding.SessionOptions) (*binding.DynamicAdvancedSession, error) {
		return binding.NewDynamicAdvancedSession(path, inputs, outputs, so)
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

func (r *Runtime) newSession(inputs, outputs []string, o Options, open func(*binding.SessionOptions) (*binding.DynamicAdvancedSession, error)) (*Session, error) {
	if len(inputs) == 0 || len(outputs) == 0 {
		return nil, errors.New("making a session: the graph needs at least one input and one output")
	}
	options, err := r.sessionOptions(o)
	if err != nil {
		return nil, fmt.Errorf("making a session: %w", err)
	}
	defer options.Destroy()
	session, err := r.first(func() (*binding.DynamicAdvancedSession, error) { return open(options) })
	if err != nil {
		return nil, fmt.Errorf("making a session: %w", oneLine(err))
	}
	return &Session{inputs: slices.Clone(inputs), outputs: slices.Clone(outputs), session: session, limit: time.Duration(r.limit.Load())}, nil
}

// first calls open, one call at a time until one has succeeded. The first session registers the
// domain of the native operators in the process. The engine checks for the domain and registers it
// without a lock, so one of two concurrent sessions would fail.
func (r *Runtime) first(open func() (*binding.DynamicAdvancedSession, error)) (*binding.DynamicAdvancedSession, error) {
	if r.started.Load() {
		return open()
	}
	r.starting.Lock()
	defer r.starting.Unlock()
	session, err := open()
	if err == nil {
		r.started.Store(true)
	}
	return session, err
}

func (r *Runtime) sessionOptions(o Options) (*binding.SessionOptions, error) {
	if o.Threads < 0 {
		return nil, fmt.Errorf("%d threads: use a positive number, or 0 for one per core", o.Threads)
	}
	if o.Threads == 0 {
		o.Threads = runtime.NumCPU()
	}
	options, err := binding.NewSessionOptions()
	if err != nil {
		return nil, oneLine(err)
	}
	if err = configure(options, o); err == nil {
		err = r.useDevice(options, o.Device)
	}
	if err == nil {
		err = accel.Register(handleOf(options))
	}
	if err != nil {
		_ = options.Destroy()
		return nil, err
	}
	return options, nil
}

// handleOf returns the OrtSessionOptions of options, which the binding does not export.
func handleOf(options *binding.SessionOptions) unsafe.Pointer {
	return reflect.ValueOf(options).Elem().FieldByName("o").UnsafePointer()
}

func configure(options *binding.SessionOptions, o Options) error {
	err := errors.Join(
		options.SetIntraOpNumThreads(o.Threads),
		options.SetInterOpNumThreads(1),
		// With memory patterns the engine allocates each run's memory as one additional block: 730
		// MiB in place of none for every tensor of a ResNet-50 at 224 with eight images per run.
		options.SetMemPattern(false),
		options.SetLogSeverityLevel(binding.LoggingLevelFatal), // errors are returned
		// Between runs the caller computes on the same cores, which spinning threads would occupy.
		// On two cores, with 5 ms of work after each run of a ResNet-20, spinning costs 1.7 times
		// the processor time. For runs in close succession on an idle machine it gains 1 to 5 %.
		options.AddSessionConfigEntry("session.intra_op.allow_spinning", flag(o.Spin)),
	)
	if o.Verbatim {
		err = errors.Join(err, options.SetGraphOptimizationLevel(binding.GraphOptimizationLevelDisableAll))
	}
	if o.ExternalDir != "" {
		err = errors.Join(err, options.AddSessionConfigEntry("session.model_external_initializers_file_folder_path", o.ExternalDir))
	}
	return oneLine(err)
}

// Inputs returns the names of the inputs, in the order of Run.
func (s *Session) Inputs() []string { return slices.Clone(s.inputs) }

// Outputs returns the names of the outputs, in the order of Run.
func (s *Session) Outputs() []string { return slices.Clone(s.outputs) }

// Close frees the session. No run may be in progress.
func (s *Session) Close() error {
	if s == nil || s.session == nil {
		return nil
	}
	err := s.session.Destroy()
	s.session = nil
	return err
}

// Run executes the graph once. It reads inputs and writes outputs in place. For a nil output it
// stores a new Value, which the caller closes. When ctx ends, the run ends with the context's
// error, and the content of the outputs is undefined.
func (s *Session) Run(ctx context.Context, inputs, outputs []*Value) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(inputs) != len(s.inputs) || len(outputs) != len(s.outputs) {
		return fmt.Errorf("running a graph of %d inputs and %d outputs with %d and %d tensors", len(s.inputs), len(s.outputs), len(inputs), len(outputs))
	}
	in, err := enter(inputs, s.inputs)
	defer release(inputs, in)
	if err != nil {
		return fmt.Errorf("running a graph: %w", err)
	}
	out, err := enter(outputs, nil)
	defer release(outputs, out)
	if err != nil {
		return fmt.Errorf("running a graph: %w", err)
	}
	if err := s.run(ctx, in, out); err != nil {
		return err
	}
	// The engine holds addresses only, so this keeps the memory alive until here.
	runtime.KeepAlive(inputs)
	return leave(outputs, out, s.outputs)
}

// enter returns the engine's values for a run, nil for a nil. needed has the names of values that
// must not be nil.
func enter(values []*Value, needed []string) ([]binding.Value, error) {
	list := make([]binding.Value, len(values))
	for i, v := range values {
		switch {
		case v == nil && needed != nil:
			return list, fmt.Errorf("input %q has no tensor", needed[i])
		case v == nil:
		case v.data == nil:
			return list, errors.New("a tensor is closed")
		case v.scalar != nil:
			bound, err := v.scalar.enter()
			if err != nil {
				return list, err
			}
			list[i] = bound
		default:
			list[i] = v.bound
		}
	}
	return list, nil
}

// leave stores the results of a run in values and creates those that are nil.
func leave(values []*Value, list []binding.Value, names []string) error {
	for i, v := range values {
		switch {
		case v == nil:
			adopted, err := adopt(list[i])
			if err != nil {
				return fmt.Errorf("output %q: %w", names[i], err)
			}
			values[i] = adopted
		case v.scalar != nil:
			v.scalar.leave(list[i])
		}
	}
	return nil
}

// release frees the values that enter created for one run.
func release(values []*Value, list []binding.Value) {
	for i, v := range values {
		if v != nil && v.scalar != nil && list[i] != nil {
			_ = list[i].Destroy() // never fails
		}
	}
}

// run executes the graph and stops when ctx or the time limit ends.
func (s *Session) run(ctx context.Context, in, out []binding.Value) error {
	if s.limit > 0 {
		limited, cancel := context.WithTimeoutCause(ctx, s.limit, &TimeoutError{s.limit})
		defer cancel()
		ctx = limited
	}
	options, err := binding.NewRunOptions()
	if err != nil {
		return fmt.Errorf("running a graph: %w", oneLine(err))
	}
	defer options.Destroy()
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		_ = options.Terminate()
	})
	err = s.session.RunWithOptions(in, out, options)
	if !stop() {
		<-stopped // options must live until Terminate has returned
		var late *TimeoutError
		switch {
		case err == nil:
		case errors.As(context.Cause(ctx), &late):
			return late
		default:
			return ctx.Err()
		}
	}
	if err != nil {
		return fmt.Errorf("running a graph: %w", oneLine(err))
	}
	return nil
}

// flag returns a switch in the syntax of the engine's configuration.
func flag(on bool) string {
	if on {
		return "1"
	}
	return "0"
}
