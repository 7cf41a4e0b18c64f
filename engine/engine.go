// Package engine is the boundary between measures and whatever computes a network.
//
// A Network describes its inputs and outputs, finds the shapes of its layers, and opens Sessions. A
// Session computes the layers that a Request names, one Batch at a time, in memory that the caller
// allocates once and uses for every batch:
//
//	s, err := net.Open(ctx, engine.Request{Outputs: []engine.Output{{Name: "relu1", Shape: []int{16, 32, 32}}}})
//	x, y := engine.NewArray(engine.Float, 8, 3, 32, 32), engine.NewArray(engine.Float, 8, 16, 32, 32)
//	err = errors.Join(s.Bind(x), s.Bind(y))
//	copy(x.Data.([]float32), pixels)
//	err = s.Run(ctx, engine.Batch{Inputs: []*engine.Array{x}, Outputs: []*engine.Array{y}})
//
// Package internal/model sits on it: it brings images, audio and arrays to the inputs, and reads
// class scores, decoded outputs and the order of tokens.
//
// # How to add an engine
//
// Write a package with a type that implements Network, and one that implements Session. Both have
// few methods; package enginetest has a network of a dozen lines. A Session that has nothing to
// prepare for an Array returns nil from Bind. Then add a way to name the engine's networks in
// study files. An engine may also implement
//
//   - Differentiable, for measures that search for inputs (inversion, STIR, robust accuracy);
//   - ForwardDifferentiable, for Lie derivatives;
//   - Checker, if what it computes with can be replaced while it is open;
//   - Noter, if it makes remarks that are no errors.
//
// Errors that callers act on wrap ErrDeviceMemory or ErrDeviceLost. A context that ends, ends a run
// within about a second.
package engine

import (
	"context"
	"errors"
	"time"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
)

// A Network gives the layers of a network for batches of samples. Several goroutines may use it.
type Network interface {
	// Metadata describes the network.
	Metadata() *Metadata
	// Hash returns a text that identifies all that the network computes with, such as the SHA-256
	// of its files in hexadecimal.
	Hash() (string, error)
	// Limits returns what bounds the sessions.
	Limits() Limits
	// Layers returns the layers with their shapes, for inputs as s describes them. It may run the
	// network.
	Layers(ctx context.Context, s Setup) (*Layers, error)
	// Open returns a session.
	Open(ctx context.Context, r Request) (Session, error)
	// Close frees the network. Its sessions must be closed before.
	Close() error
}

// A Differentiable is a Network that also gives vector-Jacobian products.
type Differentiable interface {
	Network
	// OpenVJP returns a session that also computes gradients. After the inputs that a session of
	// Open has, it has an input CotangentInput(o.Name) of the shape of each output o of the
	// request, and after the outputs a float32 output for each name in by, inputs of the network:
	// the gradient of the sum over the outputs of the products with their cotangents. Without by
	// there are no inputs of cotangents: the network may keep what the next run by an input, for
	// the same samples, needs.
	OpenVJP(ctx context.Context, r Request, by ...string) (Session, error)
	// NoVJP returns why OpenVJP fails, or "" if it does not.
	NoVJP() string
}

// CotangentInput returns the name of the input for the cotangents of an output.
func CotangentInput(output string) string { return "cotangent " + output }

// A ForwardDifferentiable is a Network that also gives Jacobian-vector products.
type ForwardDifferentiable interface {
	Network
	// OpenJVP returns a session that also computes tangents, the derivatives of outputs along a
	// direction. After the inputs that a session of Open has, it has an input TangentInput(name) of
	// the same shape for each name in given: the direction in an input of the network, which is 0
	// for others, or a layer's tangent that replaces the one that arrives there. After the outputs it
	// has the tangent that arrives at each, in their order.
	OpenJVP(ctx context.Context, r Request, given ...string) (Session, error)
	// NoJVP returns why OpenJVP fails, or "" if it does not.
	NoJVP() string
}

// TangentInput returns the name of the input for the tangent of an input or a layer.
func TangentInput(name string) string { return "tangent " + name }

// A Checker is a Network that notices when it is no longer the one that Hash identified, for
// instance because somebody has replaced its files.
type Checker interface {
	// Check returns an error if what the network computes with has changed since it was opened.
	Check(ctx context.Context) error
}

// A Noter passes remarks that are no errors to the user, each one once.
type Noter interface {
	Note(format string, values ...any)
}

// Metadata describes a network.
type Metadata struct {
	Name            string // a path or an address, for messages; files beside a path may describe the network
	Inputs, Outputs []Port
	// Properties are free texts that the network carries, such as the names of classes.
	Properties map[string]string
}

// Limits bound the sessions of a network.
type Limits struct {
	Workers int           // number of runs in parallel that are of use, at least 1
	Memory  int64         // free memory for arrays, in bytes; 0: not known
	Time    time.Duration // of one run, and of preparing one; 0: no limit
	// Reductions reports whether sessions compute Request.Reductions.
	Reductions bool
	// Pools reports whether sessions compute Output.Pool.
	Pools bool
	// Keeps reports whether activations are in a memory of the engine's own, such as that of a
	// graphics processor, from which they are copied.
	Keeps bool
	// Elsewhere reports whether runs take none of this process's cores, as on another machine: they
	// are worth starting while this process is busy.
	Elsewhere bool
}

// A Setup describes the inputs of a network in use.
type Setup struct {
	Samples []string               // inputs that samples are written to; the others have the same values in each run
	Axes    map[string]tensor.Axes // known axes of inputs and of other tensors
	Batch   int                    // number of samples of each run; 0: any
	Feed    Feed
}

// A Feed returns the array of an input for a run of n samples: zeros if samples are written to it.
type Feed func(input string, n int) (*Array, error)

// Layers are the answer to a Setup.
type Layers struct {
	// All has every layer, in the order of computation. A layer without a Shape cannot be measured:
	// its first axis is not the batch, or it is empty.
	All []tensor.Layer
	// Outputs has the shape of one sample of each output whose first axis is the batch.
	Outputs map[string][]int
	Axes    map[string]tensor.Axes // of the outputs, as far as known
	Batch   int                    // number of samples of each run: that of the Setup, or 1 if runs of two fail
}

// A Request asks for a session.
type Request struct {
	Outputs    []Output
	Reductions []Reduction // their values follow the outputs
	Parallel   int         // number of runs at a time; 0: 1
}

// An Output is a tensor that a session returns, as float32 of n x Shape.
type Output struct {
	Name  string
	Shape []int // of one sample
	// Convert reports whether the tensor may have another type, or another shape of the same size.
	Convert bool
	// Keep reports whether the values stay with the engine, where only Reductions of other sessions
	// read them. Data of its Array is nil.
	Keep bool
	// Pool, unless nil, asks for the layer Name pooled. Shape is that of the result.
	Pool *Pool
}

// A Pool makes a vector of a layer's activations on a sample: see package pooling.
type Pool struct {
	Kind string // "mean", "max", "class" or "patch"
	Axes []int  // axes of a sample that are pooled, ascending
	From int    // first position of the only one of Axes that counts, with "patch"
}

// A Reduction asks for values of the activations of a layer, clean and transformed, that the engine
// computes where the activations are. A session with Reductions runs the transformed samples, and
// has the inputs CleanInput of the layer, an array of a session that keeps it for the clean
// samples, and PartnersInput.
type Reduction struct {
	Layer  tensor.Layer
	Values *measure.Reduction
}

// PartnersInput is the input of a session with Reductions that has, for each sample of the batch,
// the index of another one as int32.
const PartnersInput = "partners of samples"

// CleanInput returns the name of the input for the clean activations of a layer.
func CleanInput(layer string) string { return "clean " + layer }

// A Session computes outputs for batches. Several goroutines may run it, each with its own arrays.
type Session interface {
	// Inputs returns the names of the inputs that the outputs depend on.
	Inputs() []string
	// Bind prepares an array for many runs. The caller closes the array, before the session.
	Bind(a *Array) error
	// Run computes the outputs of a batch.
	Run(ctx context.Context, b Batch) error
	Close() error
}

// An Allocator is a Session that gives memory to its outputs where its engine writes them. Into other
// memory they are copied.
type Allocator interface {
	// Allocate returns n values of 0, valid until the session is closed; nil if it has no such memory.
	Allocate(n int) []float32
}

// A Placer is a Session whose arrays can stay on a device between runs.
type Placer interface {
	// Place gives bound arrays memory on the device, where later runs read and write them: see
	// Array.Upload and Array.Download.
	Place(arrays ...*Array) error
}

// A Batch is what one run reads and writes.
type Batch struct {
	Inputs []*Array // in the order of Session.Inputs
	// Outputs are in the order of Request: outputs, then reductions; gradients of OpenVJP are last.
	// The engine allocates an array that is not bound, and the caller closes it.
	Outputs []*Array
	// Samples identify the samples, for engines that look activations up instead of computing them.
	Samples Samples
}

// Samples identify the samples of a batch.
type Samples struct {
	View  string // the transformation with its values; "": clean
	Index []int  // of each sample in the data; nil: not known
}

var (
	// ErrDeviceMemory is wrapped by the error of a run that needs more memory than the device has,
	// or a larger tensor than it can hold. A smaller batch may succeed.
	ErrDeviceMemory = errors.New("the device has too little memory")
	// ErrDeviceLost is wrapped by the error of a run on a device that no longer answers. Its
	// sessions cannot be used any more.
	ErrDeviceLost = errors.New("the device was lost")
)

// An AxesError is the error of Network.Layers for Setup.Axes that cannot be right.
type AxesError struct{ Err error }

func (e *AxesError) Error() string { return e.Err.Error() }

func (e *AxesError) Unwrap() error { return e.Err }
