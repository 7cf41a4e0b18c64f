package ort

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"unsafe"

	binding "github.com/yalue/onnxruntime_go"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/ort/accel"
)

// Options say how a session executes its graph. The zero Options are good ones.
type Options struct {
	// Threads share the work of one operator; 0: one for each core.
	Threads int
	// Device is "cpu" (default), "cuda", "tensorrt", "coreml", "openvino" or "directml".
	Device string
	// ExternalDir is the folder that the external weights of a graph in memory are relative to.
	ExternalDir string
	// Verbatim executes every node as the graph has it; otherwise nodes are folded, fused and
	// dropped where the outputs stay the same. Slower, but what cannot be computed fails.
	Verbatim bool
	// NoAcceleration leaves standard operators where the native ones of package accel would be
	// faster. These run on the processor alone, for graphs that NewSession is given, and are not
	// used with Verbatim.
	NoAcceleration bool
	// Spin lets the engine's threads wait busily for the next operator: some per cent faster where
	// runs follow each other without a pause, and slower than not where the caller computes on the
	// same cores between them.
	Spin bool
}

// A Session executes one graph.
type Session struct {
	inputs, outputs []string
	session         *binding.DynamicAdvancedSession
}

// NewSession returns a session for a graph in memory or read from a file; its inputs and outputs
// are the graph's, in order.
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

// NewSessionFromBytes returns a session for a serialised graph, which it does not keep. inputs and
// outputs are names of inputs and outputs of the graph, in the order in which Run will take them.
func (r *Runtime) NewSessionFromBytes(graph []byte, inputs, outputs []string, o Options) (*Session, error) {
	return r.newSession(inputs, outputs, o, func(so *binding.SessionOptions) (*binding.DynamicAdvancedSession, error) {
		return binding.NewDynamicAdvancedSessionWithONNXData(graph, inputs, outputs, so)
	})
}

// NewSessionFromFile is NewSessionFromBytes for a graph in a file; external weights are relative to
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
	return &Session{inputs: slices.Clone(inputs), outputs: slices.Clone(outputs), session: session}, nil
}

// first calls open, one call at a time until one has succeeded. The first session enters the domain
// of the native operators into a table of the process. The engine looks whether the domain is
// there, but holds no lock between the two, so that of two sessions made at once the second would
// fail.
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
		return nil, fmt.Errorf("%d threads: give a positive number, or 0 for one per core", o.Threads)
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

// handleOf returns the OrtSessionOptions behind options, which the binding keeps to itself.
func handleOf(options *binding.SessionOptions) unsafe.Pointer {
	return reflect.ValueOf(options).Elem().FieldByName("o").UnsafePointer()
}

func configure(options *binding.SessionOptions, o Options) error {
	err := errors.Join(
		options.SetIntraOpNumThreads(o.Threads),
		options.SetInterOpNumThreads(1),
		// With a pattern of one run's memory the engine takes the next run's as one block, besides
		// what it holds already: for every tensor of a ResNet-50 at 224, eight images a run, 730
		// MiB in place of none.
		options.SetMemPattern(false),
		options.SetLogSeverityLevel(binding.LoggingLevelFatal), // errors are returned
		// Between runs the caller computes on the same cores, and threads that spin in wait for the
		// next operator take them away. On two cores, with 5 ms of work after each run of a
		// ResNet-20, spinning costs 1.7 times the processor time; in runs back to back on an idle
		// machine it gains 1 to 5 %.
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

// Run executes the graph once. It reads inputs and writes outputs in place; where an output is nil
// it puts a new Value there, which the caller closes. When ctx ends, the run ends with the
// context's error, and the outputs hold anything.
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
	// The engine sees addresses only, so that is what keeps the memory alive until here.
	runtime.KeepAlive(inputs)
	return leave(outputs, out, s.outputs)
}

// enter returns what the engine reads or writes, nil for a nil. needed are the names of values that
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

// leave puts what a run wrote into values, making those that are nil.
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

// release frees what enter made for one run.
func release(values []*Value, list []binding.Value) {
	for i, v := range values {
		if v != nil && v.scalar != nil && list[i] != nil {
			_ = list[i].Destroy() // never fails
		}
	}
}

// run executes the graph, and stops when ctx ends.
func (s *Session) run(ctx context.Context, in, out []binding.Value) error {
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
		if err != nil {
			return ctx.Err()
		}
	}
	if err != nil {
		return fmt.Errorf("running a graph: %w", oneLine(err))
	}
	return nil
}

// flag returns a switch as the engine's configuration writes it.
func flag(on bool) string {
	if on {
		return "1"
	}
	return "0"
}
