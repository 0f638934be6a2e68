module assistant

go 1.26
