// Package spec reads study files. A study file lists models, data, transformations and measures.
//
//	s, err := spec.Load("study.yaml", map[string]string{"DATA": "/data"})
//
// Unknown keys, values of the wrong kind, and contradictory entries are errors with line and
// column. Schema returns the JSON Schema of the file. Template returns a commented study file for a
// model and data.
//
// Package internal/config parses the file into nodes: scalars, lists and mappings with their
// positions, at which errors are reported. It decodes them into the structs of this package. Their
// tags hold the name, the default, the bounds and the documentation of each key; a key with the tag
// short may be left out, as in `images: photos` for `images: {folder: photos}`. Each kind of source
// of samples, such as cifar10, is a struct with a method that opens it. Families lists the
// measures.
//
// Words of other packages that occur here: a cell is what a run computes and stores at once, one
// measure of one model (or pair of models) on one data set, under one transformation value, in one
// trial, which is one repetition of all random draws. Its key is a hash of all that its scores
// depend on. The resolved study is the study file that a run writes, with absolute paths, variables
// filled in, and the hashes of models and data. A synset is a class of ImageNet by its WordNet ID,
// such as n01440764.
package spec
