module example.com/stranger

go 1.26.0

require github.com/noether-ml/noether v0.0.0

require (
	gonum.org/v1/gonum v0.17.0 // indirect
	pgregory.net/rapid v1.3.0 // indirect
)

replace github.com/noether-ml/noether => ../../../..
