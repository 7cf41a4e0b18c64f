package ort

import (
	"errors"
	"reflect"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"
	binding "github.com/yalue/onnxruntime_go"
)

// A pointer is the address of an object of ONNX Runtime.
type pointer = unsafe.Pointer

// Indices of functions in OrtApi, the table of the functions of the C API. New versions only add
// functions at its end.
const (
	apiGetErrorMessage           = 2
	apiCreateEnv                 = 3
	apiCreateTensorAsOrtValue    = 48
	apiCreateTensorWithData      = 49 // CreateTensorWithDataAsOrtValue
	apiCreateCPUMemoryInfo       = 69
	apiReleaseStatus             = 93
	apiReleaseMemoryInfo         = 94
	apiReleaseValue              = 96
	apiGetAvailableProviders     = 125
	apiReleaseAvailableProviders = 126
	apiCreateAllocator           = 131
	apiReleaseAllocator          = 132
	apiAddInitializer            = 150
	apiAddExternalInitializers   = 210
	apiMemoryOfInputs            = 380 // SessionGetMemoryInfoForInputs
	apiCopyTensors               = 386
	apiGraphAssignment           = 407 // Session_GetEpGraphAssignmentInfo
	apiSubgraphProvider          = 408 // EpAssignedSubgraph_GetEpName
	apiSubgraphNodes             = 409 // EpAssignedSubgraph_GetNodes
	apiNodeName                  = 410 // EpAssignedNode_GetName
	apiNodeOperator              = 412 // EpAssignedNode_GetOperatorType
	apiUsed                      = 413 // length of the part of the table that is read
)

// capi holds functions of the C API that the binding (package onnxruntime_go) lacks. A provider
// (execution provider, EP) runs subgraphs of a model on a device. Functions that can fail return a
// status: see capi.err. axes is the number of axes of a shape.
type capi struct {
	errorMessage     func(status pointer) string
	releaseStatus    func(status pointer)
	createEnv        func(level int32, id string, env *pointer) pointer
	createTensor     func(allocator pointer, shape *int64, axes uintptr, elementType int32, value *pointer) pointer
	wrapTensor       func(memory pointer, data pointer, bytes uintptr, shape *int64, axes uintptr, elementType int32, value *pointer) pointer
	releaseValue     func(value pointer)
	cpuMemory        func(allocator, kind int32, memory *pointer) pointer
	releaseMemory    func(memory pointer)
	addInitializer   func(options pointer, name string, value pointer) pointer
	addExternal      func(options pointer, names **byte, values *pointer, count uintptr) pointer
	createAllocator  func(session, memory pointer, allocator *pointer) pointer
	releaseAllocator func(allocator pointer)
	memoryOfInputs   func(session pointer, memory *pointer, inputs uintptr) pointer
	copyTensors      func(env pointer, from, to *pointer, stream pointer, count uintptr) pointer
	graphAssignment  func(session pointer, subgraphs **pointer, count *uintptr) pointer
	subgraphProvider func(subgraph pointer, name *pointer) pointer
	subgraphNodes    func(subgraph pointer, nodes **pointer, count *uintptr) pointer
	nodeName         func(node pointer, name *pointer) pointer
	nodeOperator     func(node pointer, name *pointer) pointer

	env pointer // the OrtEnv of the process, which the binding has created
}

// The environment must exist.
func newCAPI(api pointer) (*capi, error) {
	table := (*[apiUsed]uintptr)(api)
	c := &capi{}
	for function, index := range map[any]int{
		&c.errorMessage: apiGetErrorMessage, &c.releaseStatus: apiReleaseStatus, &c.createEnv: apiCreateEnv,
		&c.createTensor: apiCreateTensorAsOrtValue, &c.wrapTensor: apiCreateTensorWithData, &c.releaseValue: apiReleaseValue,
		&c.cpuMemory: apiCreateCPUMemoryInfo, &c.releaseMemory: apiReleaseMemoryInfo,
		&c.addInitializer: apiAddInitializer, &c.addExternal: apiAddExternalInitializers,
		&c.createAllocator: apiCreateAllocator, &c.releaseAllocator: apiReleaseAllocator,
		&c.memoryOfInputs: apiMemoryOfInputs, &c.copyTensors: apiCopyTensors,
		&c.graphAssignment: apiGraphAssignment, &c.subgraphProvider: apiSubgraphProvider, &c.subgraphNodes: apiSubgraphNodes,
		&c.nodeName: apiNodeName, &c.nodeOperator: apiNodeOperator,
	} {
		purego.RegisterFunc(function, table[index])
	}
	const fatal = 4 // log level, which is not used: the environment exists and keeps its level
	return c, c.err(c.createEnv(fatal, "noether", &c.env))
}

func (c *capi) err(status pointer) error {
	if status == nil {
		return nil
	}
	defer c.releaseStatus(status)
	return oneLine(errors.New(c.errorMessage(status)))
}

func (c *capi) text(get func(object pointer, text *pointer) pointer, object pointer) (string, error) {
	var p pointer
	if err := c.err(get(object, &p)); err != nil {
		return "", err
	}
	return cString((*byte)(p)), nil
}

func (c *capi) list(get func(object pointer, list **pointer, count *uintptr) pointer, object pointer) ([]pointer, error) {
	var first *pointer
	var count uintptr
	if err := c.err(get(object, &first, &count)); err != nil || count == 0 {
		return nil, err
	}
	return unsafe.Slice(first, count), nil
}

// optionsHandle returns the OrtSessionOptions of options, which the binding does not export.
func optionsHandle(options *binding.SessionOptions) pointer {
	return reflect.ValueOf(options).Elem().FieldByName("o").UnsafePointer()
}

// sessionHandle returns the OrtSession of a session, which the binding does not export.
func sessionHandle(s *binding.DynamicAdvancedSession) pointer {
	return reflect.ValueOf(s).Elem().FieldByName("s").Elem().FieldByName("ortSession").UnsafePointer()
}

// valueHandle returns the OrtValue of a tensor, which the binding does not export.
func valueHandle(v binding.Value) pointer {
	return reflect.ValueOf(v.GetInternals()).Elem().FieldByName("ortValue").UnsafePointer()
}

func cString(p *byte) string {
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(p), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(p, n))
}

func oneLine(err error) error {
	if err == nil || !strings.ContainsAny(err.Error(), "\n\r\t") {
		return err
	}
	return errors.New(strings.Join(strings.Fields(err.Error()), " "))
}
