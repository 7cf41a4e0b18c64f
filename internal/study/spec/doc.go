// Package spec reads study files. A study file lists models, data, transformations and measures.
//
//	s, err := spec.Load("study.yaml", map[string]string{"DATA": "/data"}, catalog.Lists())
//
// Unknown keys, values of the wrong kind, and contradictory entries are errors with line and
// column. Schema returns the JSON Schema of the file.
//
// Package internal/config parses the file into nodes: scalars, lists and mappings with their
// positions, at which errors are reported. It decodes them into the structs of this package, whose
// tags hold the name, the default, the bounds and the documentation of each key.
//
// Which measures and kinds of data there are, the caller says by Lists. So this package opens no
// data, runs no model and knows no measure; package open opens what a study names. The resolved
// study is the study file that a run writes, with absolute paths, variables filled in, and the
// hashes of models and data.
package spec
