// Package oip is an engine whose models run on an inference server that speaks the Open Inference
// Protocol (KServe's predict protocol, version 2) over HTTP: Triton, KServe, OpenVINO Model Server,
// MLServer, Seldon, TorchServe.
//
//	net, err := oip.Open(ctx, "http://localhost:8000/v2/models/resnet50", oip.Options{Version: "3"})
//	m, err := model.Open(ctx, net, model.Options{Layers: []string{"output"}})
//
// The outputs of the model are its layers. Tensors cross the connection as bytes (the binary tensor
// data extension) if the server can, else as JSON. A batch that the server refuses is divided, and
// requests that may succeed later are repeated.
//
// An address of the form unix:/run/models.sock:/v2/models/resnet50 names a Unix socket.
package oip
