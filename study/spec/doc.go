// Package spec reads study files. A study file lists models, data, transformations and measures.
//
//	s, err := spec.Load("study.yaml", map[string]string{"DATA": "/data"})
//
// Unknown keys, values of the wrong kind, and contradictory entries are errors with line and
// column. Schema returns the JSON Schema of the file. Template returns a commented study file for a
// model and data.
//
// Each kind of source that an entry of data may name is a struct of keys, documented in its tags,
// with a method that opens it. The list of measures is in Families.
package spec
