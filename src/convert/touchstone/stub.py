import ast, pathlib, sys
path, name = pathlib.Path(sys.argv[1]), sys.argv[2]
tree, found = ast.parse(path.read_text()), []
class Stub(ast.NodeTransformer):
    def visit_FunctionDef(self, node):
        if node.name == name:
            found.append(node)
            first = node.body[0]
            text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
            call = ast.Call(func=ast.Name(id="NotImplementedError", ctx=ast.Load()), args=[], keywords=[])
            node.body = ([first] if text else []) + [ast.Raise(exc=call, cause=None)]
        return node
tree = Stub().visit(tree)
if not found:
    sys.exit(f"the function {name} was not found in {path}")
path.write_text(ast.unparse(ast.fix_missing_locations(tree)) + "\n")
