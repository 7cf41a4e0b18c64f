package ort

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	binding "github.com/yalue/onnxruntime_go"

	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/internal/accel"
	"github.com/noether-ml/noether/onnx"
)

// Options are the options of a session. The zero Options are suitable for most graphs.
type Options struct {
	// Threads is the number of threads that compute one operator; 0: one for each core.
	Threads int
	// Device is one of DeviceNames; "": "cpu".
	Device string
	// ExternalDir is the folder of the external weights of a graph in memory.
	ExternalDir string
	// Verbatim executes every node of the graph. Without it, the engine evaluates constant nodes in
	// advance and fuses and removes nodes if the outputs stay the same. Verbatim is slower, but
	// reports every node that cannot be computed.
	Verbatim bool
	// NoAcceleration disables the operators of package accel, written in C, which replace slower
	// standard ones. They are used on the CPU, for graphs of NewSession, and not with Verbatim.
	NoAcceleration bool
	// Spin lets the engine's threads wait for the next operator in a busy loop. Runs in close
	// succession are then 1 to 5 % faster, but runs between which the caller computes on the same
	// cores are slower.
	Spin bool

	model       string          // the file that the graph was made of; "": none
	forcedToCPU []string        // names of nodes that WebGPU cannot run; see forWebGPU
	unpacked    bool            // the engine does not copy weights to a faster layout; see hasLargeGemm
	inPlace     map[string]bool // weights whose elements the engine computes with; see unchanged
}

// A Session executes one graph.
type Session struct {
	runtime         *Runtime
	model           string       // the file that the graph was made of; "": none
	check           func() error // returns an error if a file of the weights has changed; nil: there is none
	inputs, outputs []string
	session         *binding.DynamicAdvancedSession
	onCPU           bool
	weights         *sharedWeights // large initializers in the memory of the model
	turn            chan struct{}  // for WebGPU: full while a session uses the device; else nil
	limit           time.Duration  // of one run; 0: none
	allocator       pointer        // of values that Place keeps on the device; nil until the first

	closing   sync.Mutex
	closed    bool
	abandoned int // runs whose caller has stopped waiting, and which the engine has not ended
}

// NewSession returns a session for a model. Its inputs and outputs are those of the graph, in
// order. On the CPU the session uses the memory of the large weights of the model, which must not
// change. It is an error if the engine cannot execute the graph, or has no such device.
func (r *Runtime) NewSession(m *onnx.Model, o Options) (*Session, error) {
	if o.ExternalDir == "" {
		o.ExternalDir = m.ExternalDir()
	}
	o.model = m.Path()
	var err error
	if o.onCPU() && !o.Verbatim && !o.NoAcceleration && !r.noAcceleration.Load() {
		if m, err = accel.Rewrite(m); err != nil {
			return nil, fmt.Errorf("making a session: %w", err)
		}
	}
	if o.Device == webgpu {
		if m, o.forcedToCPU, err = forWebGPU(m); err != nil {
			return nil, fmt.Errorf("making a session: %w", err)
		}
	}
	// data lacks the elements of the initializers of at least minShared bytes, which are weights.
	data, weights, err := m.Detached(minShared)
	if err != nil {
		return nil, fmt.Errorf("making a session: %w", err)
	}
	o.unpacked = o.onCPU() && hasLargeGemm(m, weights)
	if o.onCPU() {
		o.inPlace = unchanged(m)
	}
	inputs, outputs := names(m.Inputs()), names(m.Outputs())
	s, err := r.newSession(inputs, outputs, o, weights, fromBytes(data, inputs, outputs))
	if err != nil {
		return nil, err
	}
	if o.ExternalDir != "" {
		s.check = m.CheckUnchanged
		if err := s.check(); err != nil {
			s.Close()
			return nil, fmt.Errorf("making a session: %w", err)
		}
	}
	if o.onCPU() {
		return s, nil
	}
	// Remark on the operators that the device leaves to the CPU.
	if err := r.noteFallbacks(s.session, m, o.Device); err != nil {
		s.Close()
		return nil, fmt.Errorf("making a session: %w", err)
	}
	return s, nil
}

func names(ports []onnx.ValueInfo) []string {
	list := make([]string, len(ports))
	for i, p := range ports {
		list[i] = p.Name
	}
	return list
}

// NewSessionFromBytes returns a session for a serialised model, whose bytes it does not retain.
// inputs and outputs are names of the graph's inputs and outputs, at least one of each, in the
// order of the arguments of Run. Operators are not replaced by those of package accel.
func (r *Runtime) NewSessionFromBytes(graph []byte, inputs, outputs []string, o Options) (*Session, error) {
	return r.newSession(inputs, outputs, o, nil, fromBytes(graph, inputs, outputs))
}

type opener func(*binding.SessionOptions) (*binding.DynamicAdvancedSession, error)

func fromBytes(graph []byte, inputs, outputs []string) opener {
	return func(so *binding.SessionOptions) (*binding.DynamicAdvancedSession, error) {
		return binding.NewDynamicAdvancedSessionWithONNXData(graph, inputs, outputs, so)
	}
}

// NewSessionFromFile is NewSessionFromBytes for a model in a file. Paths of external weights are
// relative to its folder.
func (r *Runtime) NewSessionFromFile(path string, inputs, outputs []string, o Options) (*Session, error) {
	o.model = path
	s, err := r.newSession(inputs, outputs, o, nil, func(so *binding.SessionOptions) (*binding.DynamicAdvancedSession, error) {
		return binding.NewDynamicAdvancedSession(path, inputs, outputs, so)
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

func (r *Runtime) newSession(inputs, outputs []string, o Options, weights []onnx.Weight, open opener) (*Session, error) {
	if len(inputs) == 0 || len(outputs) == 0 {
		return nil, errors.New("making a session: the graph needs at least one input and one output")
	}
	if err := r.crashed(o.model); err != nil {
		return nil, err
	}
	options, err := r.sessionOptions(o)
	if err != nil {
		return nil, fmt.Errorf("making a session: %w", err)
	}
	openNoted := open // without the watcher
	open = func(so *binding.SessionOptions) (*binding.DynamicAdvancedSession, error) {
		defer r.enter(o.model)()
		return openNoted(so)
	}
	s := &Session{runtime: r, model: o.model, inputs: slices.Clone(inputs), outputs: slices.Clone(outputs), onCPU: o.onCPU(), limit: time.Duration(r.limit.Load())}
	if s.weights, err = r.share(options, weights, o.inPlace); err != nil {
		_ = options.Destroy()
		return nil, s.explain("making a session", err)
	}
	if o.Device == webgpu {
		s.turn = r.turn
		openNow := open // without waiting for the turn
		open = func(so *binding.SessionOptions) (*binding.DynamicAdvancedSession, error) {
			s.turn <- struct{}{}
			defer func() { <-s.turn }()
			return openNow(so)
		}
	}
	s.session, err = r.openFirst(func() (*binding.DynamicAdvancedSession, error) {
		return r.openBounded(o, options, func() (*binding.DynamicAdvancedSession, error) { return openTimed(s.limit, options, open) })
	})
	if expired := (*TimeoutError)(nil); !errors.As(err, &expired) {
		_ = options.Destroy() // after a timeout the engine still uses them
		if err != nil {
			s.weights.release()
		}
	}
	if err != nil {
		return nil, s.explain("making a session", err)
	}
	trim()
	return s, nil
}

// openTimed opens a session, or returns a TimeoutError if that takes longer than limit; 0: no
// limit. The engine, which evaluates constant nodes, cannot be stopped then and continues in the
// background.
func openTimed(limit time.Duration, options *binding.SessionOptions, open opener) (*binding.DynamicAdvancedSession, error) {
	session, err := engine.Within(limit, func() (*binding.DynamicAdvancedSession, error) { return open(options) })
	if expired := (*engine.TimeLimitError)(nil); errors.As(err, &expired) {
		err = &TimeoutError{Limit: limit, Preparing: true}
	}
	return session, err
}

// openFirst calls open, one call at a time until a call has succeeded. The first session registers
// the operator domain of package accel in the process. The engine tests for the domain and
// registers it without a lock, so one of two concurrent first sessions would fail.
func (r *Runtime) openFirst(open func() (*binding.DynamicAdvancedSession, error)) (*binding.DynamicAdvancedSession, error) {
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
		err = accel.Register(optionsHandle(options))
	}
	if err != nil {
		_ = options.Destroy()
		return nil, err
	}
	return options, nil
}

func configure(options *binding.SessionOptions, o Options) error {
	err := errors.Join(
		options.SetIntraOpNumThreads(o.Threads),
		options.SetInterOpNumThreads(1),
		// With memory patterns, an optimisation of the engine, it would allocate the memory of each
		// run as one additional block. If every tensor of a ResNet-50 at 224 x 224 is an output,
		// with eight images per run, that is 730 MiB.
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
	if !o.onCPU() {
		err = errors.Join(err, options.AddSessionConfigEntry("session.record_ep_graph_assignment_info", "1")) // for noteFallbacks
	}
	if len(o.forcedToCPU) > 0 {
		err = errors.Join(err, options.AddSessionConfigEntry("ep.webgpuexecutionprovider.forceCpuNodeNames", strings.Join(o.forcedToCPU, "\n")))
	}
	if o.unpacked {
		err = errors.Join(err, options.AddSessionConfigEntry("session.disable_prepacking", "1"))
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

// Close frees the session. No call of Run may be in progress. If the engine is still computing an
// operator of a run that was stopped, the session is freed when it ends. Later calls do nothing.
func (s *Session) Close() error {
	if s == nil {
		return nil
	}
	s.closing.Lock()
	defer s.closing.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	if s.abandoned > 0 {
		return nil // the last of the abandoned runs frees it
	}
	return s.free()
}

func (s *Session) free() error {
	return s.exclusively(context.Background(), func() error {
		if s.allocator != nil {
			s.runtime.capi.releaseAllocator(s.allocator)
		}
		err := s.session.Destroy()
		s.weights.release()
		trim()
		return err
	})
}

// exclusively calls f, in turn with the runs of other sessions where these must take turns. It
// returns the error of ctx if ctx ends before the turn.
func (s *Session) exclusively(ctx context.Context, f func() error) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.end()
	return f()
}

// begin waits for the session's turn, or until ctx ends, whose error it returns. end ends the turn.
func (s *Session) begin(ctx context.Context) error {
	if s.turn == nil {
		return nil
	}
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Session) end() {
	if s.turn != nil {
		<-s.turn
	}
}

func flag(on bool) string {
	if on {
		return "1"
	}
	return "0"
}
