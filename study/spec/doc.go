// Package spec reads study files: which models are measured on which data, under which
// transformations, by which measures.
//
//	s, err := spec.Load("study.yaml", map[string]string{"DATA": "/data"})
//
// A file is read strictly. An unknown key, a value of the wrong kind, or entries that do not go
// together are errors with the line and the column of the mistake. Schema returns the JSON Schema
// of the file, and Template a commented study to start from.
//
// Each kind of source that an entry of data may name is a struct of keys, documented in its tags,
// with a method that opens it. The list of measures is in Families.
package spec
